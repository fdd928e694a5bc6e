# The site with its own servers (compose.yaml). Each program is a command of this image.
FROM python:3.13-slim AS environment
ENV FEEDSITE_VENV=/venv
WORKDIR /site
COPY manage.py ./
COPY requirements/server.lock requirements/
# Installs like manage.py: with hashes, from wheels only. Without the embedded servers.
RUN python -c "import manage; manage.install(manage.SERVER_LOCK)"

FROM python:3.13-slim
# `backup`, `restore` and `upgrade` need a pg_dump as new as the server. Debian has 17.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates postgresql-common \
    && /usr/share/postgresql-common/pgdg/apt.postgresql.org.sh -y \
    && apt-get install --yes --no-install-recommends postgresql-client-18 \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /site --shell /usr/sbin/nologin feedsite \
    && install --directory --owner=feedsite --mode=0700 /data /metrics
COPY --from=environment /venv /venv
WORKDIR /site
COPY . .
RUN python -m compileall -q /site
ENV PATH=/venv/bin:$PATH \
    PYTHONPATH=/site \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    DJANGO_SETTINGS_MODULE=feedsite.settings \
    FEEDSITE_VENV=/venv \
    FEEDSITE_DATA_DIR=/data \
    PROMETHEUS_MULTIPROC_DIR=/metrics
USER feedsite
VOLUME ["/data"]
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["python", "manage.py", "program", "web"]
