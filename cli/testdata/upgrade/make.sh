#!/usr/bin/env bash
# Makes files/ beside it with a build of Sotto, or DIR/files.tar.gz: make.sh /path/to/old/sotto [DIR]
# README.md says what each one is. Needs bash, sed, GNU tar, gzip and a POSIX kill.
set -euo pipefail
sotto=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
clinic=$here/../../../examples/clinic
if [ $# -gt 1 ]; then
	archive=$(realpath "$2")/files.tar.gz
	work=/srv/sotto # of finished runs: a ledger with format 2 holds a hash of run.json, so that its paths stay
	mkdir $work
else
	archive=
	work=$(mktemp -d /tmp/sotto-upgrade-XXXXXX)
fi
trap 'rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work/xdg XDG_STATE_HOME=$work/state HOME=$work GOMAXPROCS=1
mkdir "$work/files"
cd "$work/files"

head -801 "$clinic/patients.csv" >patients.csv
head -201 "$clinic/heldout.csv" >heldout.csv
sed 's/^rows: 4000.*/rows: 800/' "$clinic/schema.yaml" >schema.yaml
cat >spec.yaml <<'END'
data: patients.csv
test: heldout.csv
schema: schema.yaml
model: {name: logistic}
privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}
tune:
  mean: 3
  methods:
    - {label: short, name: sgd, steps: 20}
    - nag
END
cat >net.yaml <<'END'
data: patients.csv
schema: schema.yaml
model: {name: logistic, l2: 0.0005}
privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}
network: {owners: 3, rows: 260, graph: path, schedule: all, rounds: 6}
END

for currency in caps zcdp gdp rdp; do
	"$sotto" ledger budget clinic --ledger $currency.db --epsilon 20 --delta 1e-3 --adjacency add-or-remove --currency $currency >/dev/null
done

fit() { "$sotto" fit spec.yaml --quiet "$@"; }
full=(--set method.name=sgd --set method.batch=0 --set method.steps=20)
fit --ledger caps.db --out finished --set method.name=sgd --set method.steps=40
fit --ledger zcdp.db --out finished-zcdp "${full[@]}"
fit --ledger gdp.db --out finished-gdp "${full[@]}"
fit --ledger rdp.db --out finished-rdp --set method.name=sgd --set method.steps=40
fit --ledger lab.db --out lab --lab --seed 7 --set method.name=sgd --set method.steps=20
"$sotto" tune spec.yaml --quiet --ledger caps.db --out tuned
"$sotto" data pack --schema schema.yaml --data patients.csv --out patients.pack

# broken SIGNAL DIR FLAGS…: a run that this signal ends when its first releases are durable. It is stopped most of the time
# until then, so that it takes few steps in the half second of a group.
broken() {
	local signal=$1 dir=$2
	shift 2
	"$sotto" fit --quiet "$@" &
	local pid=$! file=releases.bin
	[ "$2" != "$dir" ] || file=releases-1.bin # resumed: the first state is to be saved
	until [ -e "$dir/events.jsonl" ]; do kill -0 $pid && sleep 0.002; done
	while kill -STOP $pid && [ -z "$(find "$dir" -name $file -size +300c)" ]; do
		sleep 0.1
		kill -CONT $pid
		sleep 0.001
	done
	kill -$signal $pid
	kill -CONT $pid || true
	wait $pid || true
	[ ! -e "$dir/model.json" ]
}
long=(--set method.name=sgd --set method.batch=200 --set method.steps=30000)
for signal in INT KILL; do
	name=${signal,,}
	broken $signal $name-caps spec.yaml --out $name-caps --ledger caps.db "${long[@]}"
	broken $signal $name-rdp spec.yaml --out $name-rdp --ledger rdp.db "${long[@]}"
	broken $signal $name-filtered spec.yaml --out $name-filtered --ledger zcdp.db --set method.name=blsgd --set method.steps=200000 --set method.batch=0 --set method.growth=adaptive --set method.noise_multiplier=3000
	# States are saved of runs with many releases alone: 32 MB lie between two. A run that was stopped is told otherwise.
	broken INT $name-states spec.yaml --out $name-states --ledger caps.db "${long[@]}" --set model.name=mlp --set 'model.layers=[2 tanh]'
	sed -i 's/"public": {/"state_every": 50,\n  &/' $name-states/run.json
	broken $signal $name-states --resume $name-states
done

# Among owners: one that ended, and one whose process was killed.
"$sotto" net demo net.yaml --quiet --dir net >/dev/null
mv net/owner-1/part node && mv net/owner-1/ledger.db node.db
sed -i 's/rounds: 6/rounds: 3000/' net.yaml
"$sotto" net demo net.yaml --quiet --dir killed >/dev/null 2>&1 &
demo=$!
until [ -n "$(find killed/owner-2/part/journal.bin -size +4k 2>/dev/null)" ]; do sleep 0.02; done
for pid in $(cat /proc/$demo/task/*/children); do
	tr '\0' ' ' </proc/$pid/cmdline | grep -q 'owner-2/' && kill -KILL $pid
done
wait $demo || true
mv killed/owner-2/part node-killed && mv killed/owner-2/ledger.db node-killed.db
sed -i 's/rounds: 3000/rounds: 6/' net.yaml
rm -rf net killed

find . \( -name .lock -o -name '*.db-queue' \) -delete
if [ -n "$archive" ]; then
	rm -r int-* kill-rdp kill-states patients.pack # the older files have them
	sed -i "s|$work/files|@DIR@|g" kill-*/run.json node-killed/run.json
	tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0600 -cf - $(find . -type f | sed 's|^./||' | LC_ALL=C sort) | gzip -9n >"$archive"
	exit
fi
# No path of this machine stays. The ledger is found by --ledger.
find . -name run.json -exec sed -i "s|$work/files|@DIR@|g" {} +
if grep -rlF "$work" .; then echo "these still name a path of this machine" >&2; exit 1; fi
rm -rf "$here/files"
cp -r . "$here/files"
