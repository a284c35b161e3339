"""One machine's servers: where they live, how they are started, watched and stopped. No Django here."""
