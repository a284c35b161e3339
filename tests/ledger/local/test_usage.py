"""How `up` is called."""

import pytest
from django.core.management import CommandError, call_command


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http", ""])
def test_a_port_that_is_none_is_a_usage_error(port: str) -> None:
    with pytest.raises(CommandError, match="is not a port"):
        call_command("up", f"--port={port}")
