#!/usr/bin/env bash
# From pairs to labels and a page, asking a simulated judge: demo_judge.sh BIN FOLDER, where BIN
# holds python and btdagg. The server listens on a free port and ends with the script.
set -euo pipefail
bin=$1 folder=$2
here=$(dirname "$0")

mkdir -p "$folder"
"$bin/python" "$here/make_sums.py" "$folder/sums"
"$bin/python" "$here/judge_server" --port 0 > "$folder/address" &
server=$!
trap 'kill "$server"' EXIT
while [ ! -s "$folder/address" ]; do
  kill -0 "$server" # or the script ends
  sleep 0.1
done

OPENAI_API_KEY=none "$bin/btdagg" run "$folder/sums/pairs.jsonl" \
  --labels "$folder/sums/labels.csv" --model simulated-judge \
  --base-url "$(head -n 1 "$folder/address")" -n 12 -o "$folder/out"
"$bin/btdagg" votes "$folder/out/votes.db"
