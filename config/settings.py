"""One file of settings; what differs between machines comes from the environment (see README.md)."""

import os
from datetime import timedelta
from pathlib import Path

import structlog
from csp.constants import NONE, SELF

from config.environment import database_at, flag, words
from config.logs import without_rows
from ledger.management.local.home import ledger_home, sealing_key_of, secret_key_of

BASE_DIR = Path(__file__).resolve().parent.parent
HOME = ledger_home()
DEVELOPMENT = os.environ.get("LEDGER_ENV", "development") == "development"
ROLE = os.environ.get("LEDGER_ROLE", "command")
"""Which process this is: web, worker, beat, migrate or command."""

DEBUG = False
SECRET_KEY = os.environ.get("LEDGER_SECRET_KEY") or secret_key_of(HOME)
LEDGER_SEALING_KEYS = tuple(words("LEDGER_SEALING_KEYS")) or (sealing_key_of(HOME),)
"""What secrets are encrypted with at rest: the first seals, all of them unseal."""
ALLOWED_HOSTS = words("LEDGER_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = words("LEDGER_CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "pgtrigger",
    "guardian",
    "axes",
    "django_htmx",
    "template_partials",
    "csp",
    "ledger",
    "review",
    "dashboard",
]

MIDDLEWARE = [
    "ledger.ingest.middleware.problems_for_the_api",
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "dashboard.http.CompressPages",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "config.addresses.readable_addresses",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
APPEND_SLASH = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database ---------------------------------------------------------------------------------------------

_timeouts_s = {
    "lock_timeout": 2,
    "statement_timeout": 0 if ROLE == "migrate" else 10,
    "idle_in_transaction_session_timeout": 0 if ROLE == "migrate" else 15,
}
_database = database_at(os.environ.get("DATABASE_URL") or HOME.database_url)
_options = {
    "connect_timeout": 5,
    **_database.pop("OPTIONS"),
    "options": " ".join(f"-c {name}={seconds}s" for name, seconds in _timeouts_s.items()),
}
if ROLE == "web":
    _options["pool"] = {"min_size": 1, "max_size": 16, "timeout": 5.0}

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        **_database,
        "OPTIONS": _options,
        "CONN_MAX_AGE": 0 if ROLE == "web" else 60,
        "CONN_HEALTH_CHECKS": True,
    },
}

# --- people and sessions ----------------------------------------------------------------------------------

AUTH_USER_MODEL = "ledger.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None
LOGIN_URL = "/sign-in/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = LOGIN_URL
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=10)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_USERNAME_CALLABLE = "config.sign_in.counted_name"
AXES_LOCKOUT_TEMPLATE = "locked_out.html"

SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = not DEVELOPMENT
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "dashboard.errors.csrf_failed"
CSRF_COOKIE_SECURE = not DEVELOPMENT

# --- what a browser is told -------------------------------------------------------------------------------

SECURE_SSL_REDIRECT = not DEVELOPMENT and not flag("LEDGER_NO_SSL_REDIRECT")
SECURE_HSTS_SECONDS = 0 if DEVELOPMENT else int(os.environ.get("LEDGER_HSTS_S", "31536000"))
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = not DEVELOPMENT
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if flag("LEDGER_BEHIND_PROXY") else None
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz)$"]
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True  # files are served from where they are written; nothing is collected
WHITENOISE_AUTOREFRESH = False

# --- time, language, requests -----------------------------------------------------------------------------

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"
DATA_UPLOAD_MAX_MEMORY_SIZE = 5_000_000

LEDGER_WEB_THREADS = int(os.environ.get("LEDGER_WEB_THREADS", "8"))
"""How many requests one process of the web server works on at once; a quarter of them may wait."""
LEDGER_METRICS_TOKEN = os.environ.get("LEDGER_METRICS_TOKEN", "")

# --- what this program calls ------------------------------------------------------------------------------

LEDGER_ALLOW_HTTP = DEVELOPMENT or flag("LEDGER_ALLOW_HTTP")
LEDGER_PRIVATE_NETS = tuple(words("LEDGER_PRIVATE_NETS", "127.0.0.0/8,::1/128" if DEVELOPMENT else ""))
"""Networks that look-ups may reach beside the public ones; in development this machine itself."""

# --- worker -----------------------------------------------------------------------------------------------

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or HOME.broker_url
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_timeout": 5, "socket_connect_timeout": 5}
CELERY_TASK_SERIALIZER = "json"
CELERY_TASK_ROUTES = {"ledger.tasks.deliver": {"queue": "deliveries"}}  # slow consumers delay nothing else
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_SOFT_TIME_LIMIT = 20
CELERY_TASK_TIME_LIMIT = 25  # shorter than the lease of a look-up
CELERY_TASK_PUBLISH_RETRY = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_DB_REUSE_MAX = 100
CELERY_TIMEZONE = "UTC"

# --- logs: one JSON object a line on stderr ---------------------------------------------------------------

_shared_processors: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]
structlog.configure(
    processors=[*_shared_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)
_every_two_seconds = ("celery.beat", "celery.worker.strategy", "celery.app.trace")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": [structlog.stdlib.ExtraAdder(), *_shared_processors],
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                without_rows,
                structlog.processors.JSONRenderer(default=str),
            ],
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": os.environ.get("LEDGER_LOG_LEVEL", "INFO")},
    "loggers": {
        "django": {"level": "WARNING", "propagate": True},
        "axes": {"level": "WARNING"},
        **{name: {"level": "WARNING"} for name in _every_two_seconds},
        "httpx": {"level": "WARNING"},
    },
}
