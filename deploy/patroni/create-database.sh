#!/bin/sh
# /etc/patroni/create-database.sh, with mode 0755. Patroni runs it once, when it has created the cluster, with the address of a superuser.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 "$1" <<'SQL'
\set password `printf %s "$USHER_PASSWORD"`
create role usher login password :'password';
create database usher owner usher;
-- For reads from standbys (REPLICA_URLS).
grant pg_read_all_stats to usher;
SQL
