#!/usr/bin/env bash
# Makes files.tar.gz beside it with a build of Sotto: make.sh /path/to/old/sotto
# README.md says what is in it. Needs bash, sed, awk, GNU tar and gzip.
set -euo pipefail
sotto=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
clinic=$here/../../../examples/clinic
work=$(mktemp -d /tmp/sotto-golden-XXXXXX)
trap '[ $? = 0 ] || cat "$work/log"; rm -rf "$work"' EXIT
export XDG_DATA_HOME=$work/xdg XDG_STATE_HOME=$work/state HOME=$work SOTTO_KERN=go
mkdir "$work/files"
cd "$work/files"

head -801 "$clinic/patients.csv" >patients.csv
head -201 "$clinic/heldout.csv" >heldout.csv
sed 's/^rows: 4000.*/rows: 800/' "$clinic/schema.yaml" >schema.yaml
spec() { printf 'data: %s\nschema: %s\nmodel: %s\nprivacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}\n' "$2" "$3" "$4" >"$1.yaml"; }
spec clinic patients.csv schema.yaml '{name: logistic}'
{ cat clinic.yaml; echo 'method: {name: auto, steps: 12}'; } >auto.yaml
{ cat clinic.yaml; echo 'method: {name: sgd, schedule: warmup 3 cosine}'; } >warmup.yaml
{ sed '/^privacy/d' clinic.yaml; echo 'privacy: none'; echo 'method: {name: optimum}'; } >optimum.yaml
spec mlp patients.csv schema.yaml '{name: mlp, layers: [4 tanh, 3 relu]}'

# Other labels of the same rows.
sed 's/missing: zero}/unknown: zero, missing: zero}/' schema.yaml >others.yaml
sed -i -e 's/{name: systolic, .*/{name: systolic, type: label, min: 70, max: 220}/' -e 's/type: label, classes: \[no, yes\]/type: categorical, levels: [no, yes]/' -e 's/unknown: zero, //' others.yaml
spec linear patients.csv others.yaml '{name: linear}'
sed -e 's/{name: ward, .*/{name: ward, type: label, classes: [cardiology, general, oncology, surgery]}/' -e 's/type: label, classes: \[no, yes\]/type: categorical, levels: [no, yes]/' schema.yaml >wards.yaml
awk -F, 'NR == 1 || $7 ~ /^(cardiology|general|oncology|surgery)$/' patients.csv >wards.csv
sed -i "s/^rows: 800/rows: $(($(wc -l <wards.csv) - 1))/" wards.yaml
spec softmax wards.csv wards.yaml '{name: softmax}'

# Units of several rows, and images.
cat >visits.yaml <<'EOF'
dataset: visits
unit: {name: patient, rows: 4}
units: 150
columns:
  - {name: patient_id, type: unit}
  - {name: age, type: numeric, min: 18, max: 100}
  - {name: ward, type: categorical, levels: [cardiology, general, oncology]}
  - {name: readmitted, type: label, classes: ["no", "yes"]}
EOF
"$sotto" synth --schema visits.yaml --units 150 --seed 3 --out visits.csv >/dev/null
spec units visits.csv visits.yaml '{name: logistic}'
printf 'dataset: shapes\nrows: 60\nintercept: false\nformat: {kind: idx}\nimage: {shape: [8, 8], center: 32, scale: 255}\ncolumns: [{name: shape, type: label, classes: ["0", "1", "2"]}]\n' >shapes.yaml
awk 'BEGIN { printf "000008030000003c0000000800000008"; x = 7
	for (i = 0; i < 60; i++) for (y = 0; y < 8; y++) for (z = 0; z < 8; z++) { x = (x * 1103 + 12345) % 65536; printf "%02x", int(x / 512) + (y == i % 3 + 2) * 100 } }' | sed 's/../\\x&/g' | xargs -0 printf >shapes-images-idx3-ubyte
awk 'BEGIN { printf "000008010000003c"; for (i = 0; i < 60; i++) printf "%02x", i % 3 }' | sed 's/../\\x&/g' | xargs -0 printf >shapes-labels-idx1-ubyte
spec cnn shapes-images-idx3-ubyte shapes.yaml '{name: cnn, layers: [conv 3 3x3 stride 2 tanh, max 2 stride 1, 4 relu]}'

# fit SPEC DIR FLAGS…
fit() { local s=$1 d=$2; shift 2; "$sotto" fit $s --quiet --lab --seed 7 --ledger ledgers/$(basename $d).db --out $d "$@" 2>>"$work/log"; }
mkdir ledgers
while read -r name spec flags; do
	case $name in "" | \#*) continue ;; esac
	fit $spec runs/$name $flags
	[ $name = optimum ] || "$sotto" plan $spec --json $flags >runs/$name/plan.json
	rm runs/$name/report.html
done <"$here/cases"

# A run of the lab that goes on from where it was killed, and the same run unbroken.
long=(--set method.name=sgd --set method.steps=2000)
fit clinic.yaml unbroken "${long[@]}"
(cd unbroken && sha256sum steps.jsonl releases.bin >sums && rm events.jsonl steps.jsonl releases.bin report.html run.json)
"$sotto" fit clinic.yaml --quiet --lab --seed 7 --ledger broken.db --out broken "${long[@]}" 2>>"$work/log" &
pid=$!
until [ -e broken/events.jsonl ]; do kill -0 $pid && sleep 0.002; done
while kill -STOP $pid && [ -z "$(find broken -name releases.bin -size +300c)" ]; do
	sleep 0.1
	kill -CONT $pid
	sleep 0.001
done
kill -KILL $pid
wait $pid || true
[ ! -e broken/model.json ]
sed -i "s|$work/files|@DIR@|g" broken/run.json

# Figures of the laboratory: owners in one process, a comparison, two audits.
cat >net.yaml <<'EOF'
data: patients.csv
test: heldout.csv
schema: schema.yaml
model: {name: logistic, l2: 0.0005}
privacy: {epsilon: 1, delta: 1e-5, adjacency: add-or-remove}
network: {column: ward, rows: [340, 160, 160, 140], graph: ring, schedule: matching, rounds: 12}
EOF
mkdir figures
for method in dda dgd laplace-dgd; do
	sed "s/rounds: 12/&, method: {name: $method}/" net.yaml >net-$method.yaml
	[ $method != laplace-dgd ] || sed -i -e 's/delta: 1e-5/delta: 0/' -e 's/schedule: matching/schedule: all/' net-$method.yaml
	"$sotto" net simulate net-$method.yaml --seed 4 --json >figures/net-$method.json 2>>"$work/log"
done
rm net.yaml
"$sotto" audit clinic.yaml --json --seed 4 --canaries 400 --epsilon 8 --method sgd --set method.steps=5 >figures/audit-canaries.json
"$sotto" audit clinic.yaml --json --seed 4 --runs 300 --epsilon 4 --method majority >figures/audit-runs.json
"$sotto" compare clinic.yaml --quiet --methods sgd,nag --epsilon 0.5,2 --seeds 2 --split 0.8 --set method.steps=5 --out compare 2>>"$work/log"
mv compare/runs.jsonl figures/compare.jsonl && rm -r compare
rm -r ledgers

find . \( -name .lock -o -name '*.new' \) -delete
sed -i "s|$work/files|@DIR@|g" runs/*/run.json
if grep -rlF "$work" .; then echo "these still name a path of this machine" >&2; exit 1; fi
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0600 -cf - $(find . -type f | sed 's|^./||' | LC_ALL=C sort) | gzip -9n >"$here/files.tar.gz"
