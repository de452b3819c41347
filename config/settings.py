"""All settings of Parley, read from the environment, with safe defaults.

Without any setting Parley runs embedded: `manage.py up` starts PostgreSQL under `var/` and exports
DATABASE_URL before it imports this module. With DATABASE_URL, and REDIS_URL if there is a Redis, it runs
on one host or many.
docs/reference/settings.md explains each setting in one sentence; a test compares the two.
"""

from __future__ import annotations

from typing import Any

from corsheaders.defaults import default_headers
from django.core.exceptions import ImproperlyConfigured

from config import env, keys, storage_settings
from config.outgoing import outgoing_settings
from config.process import installation
from config.telemetry import otel_settings, sentry_dsn

VAR_DIR = installation.var_folder()

# --- network ------------------------------------------------------------------------------------
HOST = env.text("HOST", "127.0.0.1")
PORT = env.integer("PORT", 8000, minimum=1, maximum=65535)
_REACHED_AT = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(HOST, HOST)
PUBLIC_URL = env.url("PUBLIC_URL", f"http://{_REACHED_AT}:{PORT}", schemes=("http", "https")).rstrip("/")
DEBUG = env.flag("DEBUG", False)
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", ["localhost", "127.0.0.1", "[::1]", HOST])
CORS_ALLOWED_ORIGINS = env.words("CORS_ALLOWED_ORIGINS")
CORS_ALLOW_HEADERS = [
    *default_headers,
    "idempotency-key",
    "last-event-id",
    "x-on-disconnect",
    "x-prompt-version",
    "x-request-id",
    "x-run-deadline",
]
CORS_EXPOSE_HEADERS = ["Location", "Retry-After", "X-Request-Id", "X-Request-Id-Replaced"]
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")
BEHIND_TLS = env.flag("BEHIND_TLS", PUBLIC_URL.startswith("https://"))

# --- keys: created once under var/ unless set ---------------------------------------------------
SECRET_KEY = keys.read_secret("SECRET_KEY", VAR_DIR)
JWT_SECRET = keys.read_secret("JWT_SECRET", VAR_DIR)
SEALING_KEYS = keys.read_sealing_keys("SEALING_KEYS", VAR_DIR)
JWT_AUDIENCES = env.words("JWT_AUDIENCES")
JWT_ISSUERS = env.words("JWT_ISSUERS")
JWT_JWKS_URL = keys.read_jwks_url("JWT_JWKS_URL")
JWT_JWK = keys.read_public_jwk("JWT_JWK")
if (JWT_JWKS_URL or JWT_JWK) and not JWT_ISSUERS:
    raise ImproperlyConfigured(
        "JWT_ISSUERS is not set. With JWT_JWKS_URL or JWT_JWK, name whose tokens these keys sign, "
        "like JWT_ISSUERS=https://issuer.example: some providers sign for strangers with the same keys."
    )
GUESTS_ALLOWED = env.flag("GUESTS_ALLOWED", True)
JWT_LOCAL_ISSUER = env.text("JWT_LOCAL_ISSUER", "parley")
JWT_LOCAL_TTL_S = env.integer("JWT_LOCAL_TTL_S", 86_400, minimum=60, maximum=31_536_000)
JWT_CLOCK_SKEW_S = env.integer("JWT_CLOCK_SKEW_S", 120, minimum=0, maximum=3600)

# --- PostgreSQL, broker, notifications ----------------------------------------------------------
DATABASE_URL = env.url("DATABASE_URL", schemes=("postgresql", "postgres"))
if not DATABASE_URL:
    raise ImproperlyConfigured(
        f"DATABASE_URL is not set. Start with `{installation.UP}` (it brings its own PostgreSQL), go "
        f"through `{installation.MANAGE}`, or set DATABASE_URL=postgresql://user:password@host:5432/parley."
    )
DATABASE_POOL_SIZE = env.integer("DATABASE_POOL_SIZE", 8, minimum=2, maximum=200)
DATABASES: dict[str, Any] = {
    "default": env.django_database("DATABASE_URL", DATABASE_URL)
    | {"ENGINE": "django.db.backends.postgresql", "DISABLE_SERVER_SIDE_CURSORS": True}
}
DATABASES["default"]["OPTIONS"]["pool"] = {"min_size": 0, "max_size": DATABASE_POOL_SIZE, "timeout": 10}
DIRECT_DATABASE_URL = env.url("DIRECT_DATABASE_URL", schemes=("postgresql", "postgres"))
DIRECT_DATABASE = (
    env.django_database("DIRECT_DATABASE_URL", DIRECT_DATABASE_URL) if DIRECT_DATABASE_URL else {}
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REDIS_URL = env.url("REDIS_URL", schemes=("redis", "rediss", "unix"))
CELERY_BROKER_URL = env.url(
    "CELERY_BROKER_URL", REDIS_URL, schemes=("redis", "rediss", "amqp", "amqps", "unix")
)
COORDINATION = env.choice(
    "COORDINATION", "redis" if REDIS_URL else "postgresql", ("redis", "postgresql", "memory")
)
if COORDINATION == "redis" and not REDIS_URL:
    raise ImproperlyConfigured(
        "COORDINATION=redis needs an address of Redis. Set REDIS_URL, or leave COORDINATION unset."
    )
CACHES: dict[str, Any] = {
    "default": {"BACKEND": "config.coordination.json_cache.JsonRedisCache", "LOCATION": REDIS_URL}
    | {"VERSION": 2}  # 1 had pickles
    if REDIS_URL
    else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "parley"}
}

# --- limits: 0 means no limit --------------------------------------------------------------------
TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
RATE_USER_PER_MINUTE = env.integer("RATE_USER_PER_MINUTE", 60_000, minimum=0, maximum=100_000_000)
RATE_GUEST_PER_MINUTE = env.integer("RATE_GUEST_PER_MINUTE", 120, minimum=0, maximum=100_000_000)
RATE_IP_PER_MINUTE = env.integer("RATE_IP_PER_MINUTE", 1_200, minimum=0, maximum=100_000_000)
RATE_SIGN_IN_PER_MINUTE = env.integer("RATE_SIGN_IN_PER_MINUTE", 30, minimum=0, maximum=1_000_000)
RATE_WRONG_PASSWORDS_PER_10_MINUTES = env.integer(
    "RATE_WRONG_PASSWORDS_PER_10_MINUTES", 10, minimum=0, maximum=1_000_000
)
CONNECTIONS_PER_ADDRESS = env.integer("CONNECTIONS_PER_ADDRESS", 10_000, minimum=0, maximum=10_000_000)
STREAMS_PER_USER = env.integer("STREAMS_PER_USER", 20, minimum=0, maximum=1_000_000)
METRICS_TOKEN = env.text("METRICS_TOKEN")
METRICS_NETWORKS = env.networks("METRICS_NETWORKS")
OTEL_TRACES = otel_settings.TRACES
OTEL_METRICS = otel_settings.METRICS
OTEL_METRICS_INTERVAL_S = otel_settings.METRICS_INTERVAL_S
SENTRY_DSN = env.url("SENTRY_DSN", schemes=("https", "http"))
SENTRY_ENVIRONMENT = env.text("SENTRY_ENVIRONMENT", "production")
if SENTRY_DSN:
    installation.require_extra("sentry", "sentry_sdk", setting="SENTRY_DSN")
    sentry_dsn.check(SENTRY_DSN)
STREAMS_PER_CONVERSATION = env.integer("STREAMS_PER_CONVERSATION", 10, minimum=0, maximum=1_000_000)

# --- outgoing connections -----------------------------------------------------------------------
OUTGOING_PROXY = outgoing_settings.read_proxy()
OUTGOING_NO_PROXY = outgoing_settings.read_exceptions()
OUTGOING_CA_FILE = outgoing_settings.read_ca_file()

# --- attachments --------------------------------------------------------------------------------
ATTACHMENT_STORAGE = storage_settings.KIND
ATTACHMENT_BUCKET = storage_settings.BUCKET
ATTACHMENT_SERVE = env.choice("ATTACHMENT_SERVE", "stream", ("stream", "redirect"))
ATTACHMENT_SCANNER = storage_settings.scanner()
ATTACHMENT_MAX_MEGAPIXELS = env.integer("ATTACHMENT_MAX_MEGAPIXELS", 50, minimum=1, maximum=89)
ATTACHMENT_ORPHAN_DAYS = env.integer("ATTACHMENT_ORPHAN_DAYS", 7, minimum=2, maximum=3650)
DOCUMENT_LIMIT_KB = env.integer("DOCUMENT_LIMIT_KB", 512, minimum=1, maximum=10_240)
FETCH_FILES = env.integer("FETCH_FILES", 16, minimum=0, maximum=1_000)
FETCH_NETWORKS = env.networks("FETCH_NETWORKS")
FETCH_S = env.seconds("FETCH_S", 10, minimum=0.1, maximum=120)
CLAMAV_ADDRESS = storage_settings.clamav_address()
SIGNED_URL_TTL_S = env.integer("SIGNED_URL_TTL_S", 3600, minimum=1, maximum=86_400)
SUPABASE_URL = storage_settings.SUPABASE_URL
SUPABASE_JWT_SECRET = storage_settings.supabase_secret()
STORAGES = storage_settings.storages(VAR_DIR)

# --- runs ---------------------------------------------------------------------------------------
WORKER_CAPACITY = env.integer("WORKER_CAPACITY", 5_000, minimum=1, maximum=10_000)
RUN_DEADLINE_S = env.integer("RUN_DEADLINE_S", 600, minimum=1, maximum=86_400)
RUN_QUEUE_LIMIT_S = env.integer("RUN_QUEUE_LIMIT_S", 3_600, minimum=1, maximum=604_800)
RUN_ATTEMPTS = env.integer("RUN_ATTEMPTS", 2, minimum=1, maximum=2)
RUN_ANSWER_KB = env.integer("RUN_ANSWER_KB", 8_192, minimum=1, maximum=1_048_576)
RUN_LOG_KB = env.integer("RUN_LOG_KB", 65_536, minimum=64, maximum=1_048_576)
STATE_LIMIT_KB = env.integer("STATE_LIMIT_KB", 1_024, minimum=1, maximum=65_536)
RUNS_WAITING = env.integer("RUNS_WAITING", 10_000, minimum=1, maximum=10_000_000)
RUNS_WAITING_PER_USER = env.integer("RUNS_WAITING_PER_USER", 1_000, minimum=1, maximum=10_000_000)
VALUES_PER_BODY = env.integer("VALUES_PER_BODY", 50_000, minimum=1_000, maximum=10_000_000)
REQUEST_LIMIT_KB = env.integer("REQUEST_LIMIT_KB", 16_384, minimum=64, maximum=65_536)
POSTS_AT_ONCE = env.integer("POSTS_AT_ONCE", 512, minimum=1, maximum=100_000)
SLOW_READER_S = env.seconds("SLOW_READER_S", 30, minimum=0.1, maximum=3600)
LEASE_S = env.seconds("LEASE_S", 10, minimum=2, maximum=300)
DRAIN_S = env.seconds("DRAIN_S", 20, minimum=0, maximum=3600)
HEARTBEAT_S = env.seconds("HEARTBEAT_S", 5, minimum=0.1, maximum=300)
PROVIDER_CONNECT_S = env.seconds("PROVIDER_CONNECT_S", 10, minimum=0.1, maximum=600)
PROVIDER_FIRST_TOKEN_S = env.seconds("PROVIDER_FIRST_TOKEN_S", 60, minimum=0.1, maximum=3600)
PROVIDER_IDLE_S = env.seconds("PROVIDER_IDLE_S", 60, minimum=0.1, maximum=3600)
TOOL_STEPS = env.integer("TOOL_STEPS", 16, minimum=1, maximum=1_000)
APPROVAL_TTL_S = env.integer("APPROVAL_TTL_S", 86_400, minimum=1, maximum=31_536_000)
TOOL_CALLS = env.integer("TOOL_CALLS", 64, minimum=1, maximum=10_000)
MCP_STDIO_COMMANDS = env.words("MCP_STDIO_COMMANDS")
MCP_STDIO_ENV = env.words("MCP_STDIO_ENV")
MCP_CONNECT_S = env.seconds("MCP_CONNECT_S", 10, minimum=0.1, maximum=120)
MCP_REFRESH_S = env.seconds("MCP_REFRESH_S", 30, minimum=0.5, maximum=86_400)
CONTEXT_TOKENS = env.integer("CONTEXT_TOKENS", 32_000, minimum=1_000, maximum=100_000_000)
RUNNER_COMMANDS = env.words("RUNNER_COMMANDS")
RUNNER_ENV = env.words("RUNNER_ENV")
PLUGIN_CONNECT_S = env.seconds("PLUGIN_CONNECT_S", 10, minimum=0.1, maximum=120)
PLUGIN_WAIT_S = env.seconds("PLUGIN_WAIT_S", 15, minimum=0, maximum=600)
PLUGIN_REFRESH_S = env.seconds("PLUGIN_REFRESH_S", 10, minimum=0.1, maximum=3_600)
FOLD_AFTER_S = env.seconds("FOLD_AFTER_S", 60, minimum=0, maximum=604_800)
HOST_AUDIT_DAYS = env.integer("HOST_AUDIT_DAYS", 90, minimum=0, maximum=36_500)
CONTENT_DAYS = env.integer("CONTENT_DAYS", 0, minimum=0, maximum=36_500)
AUDIT_DAYS = env.integer("AUDIT_DAYS", 0, minimum=0, maximum=36_500)
ARTIFACT_DAYS = env.integer("ARTIFACT_DAYS", 0, minimum=0, maximum=36_500)
EVENT_RETENTION_DAYS = env.integer("EVENT_RETENTION_DAYS", 0, minimum=0, maximum=36_500)
EXA_API_KEY = env.text("EXA_API_KEY")
EXA_BASE_URL = env.url("EXA_BASE_URL", "https://api.exa.ai", schemes=("http", "https"))
DEMO_TOKEN_S = env.seconds("DEMO_TOKEN_S", 0.015, minimum=0, maximum=5)

# --- Django -------------------------------------------------------------------------------------
ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
AUTH_USER_MODEL = "accounts.User"
INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "config.staff.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "corsheaders",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "channels",
    "config",
    "config.coordination.apps.CoordinationConfig",
    "config.audit.apps.AuditConfig",
    "config.auth.apps.AccountsConfig",
    "conversations",
    "prompts",
    "agents",
]
MIDDLEWARE = [  # the pages'; the API has its own (config/http/asgi_handlers.py)
    "corsheaders.middleware.CorsMiddleware",
    "config.http.middleware.Security",
    "config.http.middleware.StaticFiles",
    "config.http.middleware.AdminPolicy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "config.http.middleware.Acting",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
# This check looks for Django's class by name; `Security` inherits from it.
SILENCED_SYSTEM_CHECKS = ["security.W001"]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
AUTHENTICATION_BACKENDS = ["config.auth.passwords.PasswordBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("MinimumLengthValidator", "CommonPasswordValidator", "NumericPasswordValidator")
]
LOGIN_URL = "/admin/login/"
LOGIN_REDIRECT_URL = "/admin/"
LANGUAGE_CODE = "en"
TIME_ZONE = env.time_zone("TIME_ZONE", "UTC")
USE_TZ = True
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
STATIC_URL = "/static/"
STATIC_ROOT = env.text("STATIC_ROOT") or None
WHITENOISE_USE_FINDERS = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BEHIND_TLS
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_TLS else None
SECURE_HSTS_SECONDS = env.integer("HSTS_S", 0, minimum=0, maximum=126_230_400) if BEHIND_TLS else 0
SECURE_CONTENT_TYPE_NOSNIFF = True
X_FRAME_OPTIONS = "DENY"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["config.http.drf_plugins.BearerAuthentication"],
    "DEFAULT_THROTTLE_CLASSES": ["config.http.drf_plugins.CallerThrottle"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.http.drf_plugins.SafeJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "config.http.drf_plugins.render_error",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Parley",
    "VERSION": "",  # `config.openapi.introduction` describes the whole
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "SERVE_PERMISSIONS": ["rest_framework.permissions.AllowAny"],
    "SERVE_AUTHENTICATION": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SWAGGER_UI_SETTINGS": "{deepLinking: true, plugins: [localReferences]}",  # of `config/api_docs.js`
    "REDOC_DIST": "SIDECAR",
    "POSTPROCESSING_HOOKS": ["config.openapi.document.add_async_operations"],
}
UNFOLD = {
    "SITE_TITLE": "Parley",
    "SITE_HEADER": "Parley",
    "SITE_URL": "/chat/",
    "SITE_SUBHEADER": "Agent runs you can trust",
    "SITE_SYMBOL": "forum",
    "SITE_FAVICONS": [{"rel": "icon", "type": "image/svg+xml", "href": "/static/config/favicon.svg"}],
    "LOGIN": {"form": "config.auth.sign_in_pages.AdminSignInForm"},
    "SHOW_VIEW_ON_SITE": False,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "8px",
    "STYLES": ["/static/config/admin.css"],
    "SIDEBAR": {"show_search": True, "navigation": "config.staff.navigation.build_sidebar"},
}
LOG_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
LOG_FORMAT = env.choice("LOG_FORMAT", "json", ("json", "console"))
LOGGING_CONFIG = "config.logs.configure"
LOGGING = {"level": LOG_LEVEL, "format": LOG_FORMAT, "sentry": bool(SENTRY_DSN)}
