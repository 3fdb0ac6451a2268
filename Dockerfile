# Pinned by its full version. Add the digest of the image that you have checked: FROM python:...@sha256:...
FROM python:3.11.13-slim-bookworm AS build
WORKDIR /build
COPY requirements.lock ./
# Every file is held against the hashes of the lock; what is not in this folder afterwards cannot be installed below.
RUN pip download --quiet --require-hashes --requirement requirements.lock --dest /wheels
COPY pyproject.toml README.md ./
COPY monitor ./monitor
COPY rules ./rules
COPY docs/runbooks ./docs/runbooks
RUN pip install --quiet --no-index --find-links /wheels hatchling \
    && pip wheel --quiet --no-index --no-deps --no-build-isolation --wheel-dir /wheels . \
    && python -m venv /opt/recsys-monitor \
    && /opt/recsys-monitor/bin/pip install --quiet --no-index --find-links /wheels recsys-monitor

FROM python:3.11.13-slim-bookworm
RUN useradd --system --uid 10001 --user-group --home-dir /var/lib/recsys-monitor --create-home recsys
COPY --from=build /opt/recsys-monitor /opt/recsys-monitor
ENV PATH=/opt/recsys-monitor/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    RECSYS_LISTEN=0.0.0.0:9108 \
    RECSYS_HEALTH_URL=http://127.0.0.1:9108/-/healthy
WORKDIR /var/lib/recsys-monitor
USER 10001:10001
VOLUME /var/lib/recsys-monitor
EXPOSE 9108
HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-m", "monitor.service.probe"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["recsys-monitor"]
CMD ["run", "--config", "/etc/recsys-monitor/recsys-monitor.yaml"]
