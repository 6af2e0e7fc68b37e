# syntax=docker/dockerfile:1
# The program `overdue`, statically linked, in some 30 MB, for a user without rights.
#   docker build -t overdue .
#   docker run overdue relay --redis redis://redis.internal/ --listen 0.0.0.0:9633
# Alpine and not an empty image: `consume --exec` and `--pipe` run commands. Add yours with FROM overdue.

ARG RUST=1.95
FROM rust:${RUST}-alpine AS build
# For the C of the TLS library.
RUN apk add --no-cache musl-dev
# Function names stay for backtraces; line tables are four times the program.
ENV CARGO_PROFILE_RELEASE_STRIP=debuginfo
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --release --locked -p overdue-cli && cp target/release/overdue /overdue

FROM alpine:3.22
# Process 1 must reap the orphans of commands, and the authorities of TLS must be there.
RUN apk add --no-cache ca-certificates tini && adduser -D -H -u 10001 overdue
COPY --from=build /overdue /usr/local/bin/overdue
USER 10001:10001
# Where relays and consumers serve metrics and health, with --listen 0.0.0.0:PORT.
EXPOSE 9633 9634
# Whoever starts it allows 40 s between SIGTERM and SIGKILL. The health check is `overdue probe relay` or `consume`: it differs with the command.
ENTRYPOINT ["/sbin/tini", "--", "overdue"]
CMD ["--help"]
