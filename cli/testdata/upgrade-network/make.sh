#!/usr/bin/env bash
# Makes files/ beside it with a build of Sotto from before limits: make.sh /path/to/old/sotto
# Two owners and their hub in the midst of a training, all killed. Credentials are good for five years.
set -euo pipefail
sotto=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
clinic=$here/../../../examples/clinic
work=$(mktemp -d /tmp/sotto-upgrade-XXXXXX)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work/xdg XDG_STATE_HOME=$work/state HOME=$work GOMAXPROCS=1
mkdir "$work/files"
cd "$work/files"

sed 's/^rows: 4000.*/rows: 200/' "$clinic/schema.yaml" >schema.yaml
cat >net.yaml <<'END'
schema: schema.yaml
model: {name: logistic, l2: 0.0005}
privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}
network: {files: [north.csv, south.csv], rows: 100, schedule: all, rounds: 60}
END
"$sotto" net init net.yaml --dir net --hub tls://127.0.0.1:4222 >/dev/null
"$sotto" hub net/hub.json --dir hub --port 0 >url &
pids+=($!)
until [ -s url ]; do sleep 0.05; done
first=2
for owner in north south; do
	mkdir $owner
	sed -n "1p;$first,$((first + 99))p" "$clinic/patients.csv" >$owner/rows.csv
	first=102
	"$sotto" net invite $owner --dir net --out $owner/credentials.json --days 1825 >/dev/null
	"$sotto" node net.yaml --credentials $owner/credentials.json --data $owner/rows.csv --dir $owner/part --ledger $owner/ledger.db --hub "$(cat url)" --quiet &
	pids+=($!)
done
until [ -n "$(find north/part/journal.bin -size +2k 2>/dev/null)" ]; do sleep 0.01; done
kill -KILL "${pids[@]}"
wait || true
[ ! -e north/part/model.json ]
mv net/hub.json net/organiser.json . && rm -r net url
find . -name .lock -delete
sed -i "s|$work/files|@DIR@|g" */part/run.json
if grep -rlF "$work" .; then echo "these still name a path of this machine" >&2; exit 1; fi
rm -rf "$here/files"
cp -r . "$here/files"
