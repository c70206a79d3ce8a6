"""Shell contexts: commands with a value `[v]` in them. ⏎ stands for a line break, ⇥ for a tab."""

from __future__ import annotations


def _commands(text: str) -> list[str]:
    return [line.replace("⏎", "\n").replace("⇥", "\t") for line in text.strip("\n").splitlines()]


# Each writes the value, and nothing else, to its standard output.
ARRIVES = _commands(r"""
printf %s [v]
printf %s '[v]'
printf %s "[v]"
printf %s $'[v]'
printf %s $"[v]"
printf %s ''[v]""
IFS= read -r -d "" x <<END⏎[v]⏎END⏎printf %s "${x%?}"
IFS= read -r -d '' x <<'END'⏎[v]⏎END⏎printf %s "${x%?}"
IFS= read -r -d '' x <<\END⏎[v]⏎END⏎printf %s "${x%?}"
IFS= read -r -d "" x <<< [v]; printf %s "${x%?}"
IFS= read -r -d '' x <<< '[v]'; printf %s "${x%?}"
x=$(printf %s. [v]); printf %s "${x%.}"
x=$(printf %s. '[v]'); printf %s "${x%.}"
x="$(printf %s. "[v]")"; printf %s "${x%.}"
x=`printf %s. [v]`; printf %s "${x%.}"
x=$(cat <<END⏎[v].⏎END⏎); printf %s "${x%.}"
x=[v]; printf %s "$x"
x='[v]'; printf %s "$x"
x=[v] bash -c 'printf %s "$x"'
a=(one [v] "two"); printf %s "${a[1]}"
for x in [v]; do printf %s "$x"; done
case [v] in *) printf %s [v] ;; esac
case '[v]' in [v]) printf %s [v] ;; *) printf no ;; esac
if [[ x != [v]x ]] && [ -n [v]x ]; then printf %s [v]; fi
f() { printf %s "$1"; }; f [v]
( printf %s [v] )
{ printf %s [v]; }
cat <(printf %s [v])
printf %s [v] | cat
# it's [v] `"⏎printf %s '[v]' # "[v]
bash -c 'printf %s "$1"' bash [v]
sh -c 'x=$1; printf %s "$x"' sh [v]
sh -c 'bash -c "printf %s \"\$1\"" bash "$1"' sh [v]
x=a[v]b; x=${x#a}; printf %s "${x%b}"
x='a[v]b'; x=${x#a}; printf %s "${x%b}"
x=[v]/[v]; printf %s "${x:0:${#x}/2}"
env X=[v] sh -c 'printf %s "$X"'
export X=[v]; sh -c 'printf %s "$X"'
f() { local x=[v]; printf %s "$x"; }; f
declare -r q=[v] 2>/dev/null; printf %s [v]
x=; x+=[v]; printf %s "$x"
a=(); a+=([v]); printf %s "${a[0]}"
declare -A m; m[key]=[v]; printf %s "${m[key]}"
a=([v]); for x in "${a[@]}"; do printf %s "$x"; done
set -- [v]; printf %s "$1"
printf '%s\0' [v] | { IFS= read -r -d '' x; printf %s "$x"; }
while IFS= read -r -d '' x; do printf %s "$x"; done < <(printf '%s\0' [v])
if false; then :; else printf %s [v]; fi
until printf %s [v]; do :; done
true && printf %s [v]
false || printf %s [v]
! printf %s [v]
printf %s [v] & wait
printf %s \⏎ [v]
printf >&1 %s [v]
{ printf %s [v]; } 2>/dev/null
x='[v]'; printf %s "${x#}"
[ [v] = [v] ] && printf %s [v]
[[ [v] == [v] ]] && printf %s [v]
[[ x[v] == [v]x || 1 ]] && printf %s [v]
[[ -z [v] || a[v] =~ [v] ]]; printf %s [v]
IFS= read -r -d "" x <<-END⏎⇥[v]⏎⇥END⏎printf %s "${x%?}"
cat <<END | { IFS= read -r -d '' x; printf %s "${x%?}"; }⏎[v]⏎END
IFS= read -r -d '' x <<'END'⏎$(touch PWNED)`touch PWNED`\[v]⏎[v]⏎END⏎printf %s [v]
x=a$(printf %s. [v])b; x=${x#a}; printf %s "${x%.b}"
y=[v]; printf %s "${x:-$y}"
printf %s [v]{,}| head -c 0; printf %s [v]
printf %s [v] | python3 -c 'import sys; sys.stdout.write(sys.stdin.read())'
X=[v] awk 'BEGIN { printf "%s", ENVIRON["X"] }'
python3 -c 'import sys; sys.stdout.buffer.write(sys.argv[1].encode())' -- [v] | cat >/dev/null; printf %s [v]
for x in a [v] b; do :; done; printf %s [v]
printf '%s' "[v]" && : "it's"
""")

# In each the value, or a variable that holds it, would be evaluated again, or names a command or a file.
EVALUATED = _commands(r"""
declare -a x=[v]
declare -a x; declare x=[v]
x=(); declare x=[v]
f() { local -a x=[v]; }; f
readonly -A x='[v]'
export -a x="[v]"
[v]() { :; }
cat <<[v]⏎x⏎[v]
for [v] in a; do :; done
bash < <(echo [v])
sh -s < <(printf %s '[v]')
. /dev/fd/3 3< <(echo [v])
exec <<< [v]; sh
exec < <(echo [v])
echo [v] > f.sh; sh f.sh
echo [v] > f.sh; . ./f.sh
printf '%s\n' [v] >> run; chmod +x run; ./run
cat > x.py <<E⏎[v]⏎E⏎python3 x.py
PATH=[v] ls
PATH=[v]; ls
export PATH=[v]:$PATH
BASH_ENV=[v] bash x.sh
ENV=[v] sh -i
PS4=[v] bash -x x.sh
PROMPT_COMMAND=[v]
IFS=[v]; ls
LD_PRELOAD=[v] ls
env LD_PRELOAD=[v] ls
GIT_SSH_COMMAND=[v] git fetch
env GIT_PAGER=[v] git log
EDITOR=[v] git commit
PAGER=[v] man ls
PYTHONSTARTUP=[v] python3 -i
NODE_OPTIONS=[v] node x.js
LESSOPEN=[v] less x
bash -o pipefail -c 'eval "$1"' bash [v]
bash -euo pipefail -c '[v]'
set -o pipefail; bash +o posix -c [v]
npx [v]
flock x [v]
taskset 1 [v]
systemd-run [v]
tmux new [v]
xvfb-run [v]
base64 -d <<< [v] | sh
printf %s [v] | base64 -d | sh
echo $(<[v])
command eval [v]
builtin eval "[v]"
\eval [v]
'ev'al [v]
run() { eval "$@"; }; run [v]
x=[v]; trap "$x" EXIT
x=[v]; echo $[x]
x=[v]; y=(1 2); echo ${y[@]:x}
[v] --version
ls; [v]
ls | [v]
! [v]
if [v]; then :; fi
sudo [v]
env A=1 [v]
exec [v]
./bin/[v]
"[v]" x
x=1 [v]
timeout 5 [v]
nice -n 5 [v]
sudo -u me [v] x
command [v]
while [v]; do :; done
( [v] )
{ [v]; }
$( [v] )
x=$([v])
cat <([v])
a && [v]
time [v]
x=[v]; $x
x=[v]; "$x" a
f() { "$1"; }; f [v]
for x in [v]; do $x; done
set -- [v]; $1
a=([v]); ${a[0]}
read x <<< [v]; $x
nohup [v] &
coproc [v]
eval [v]
eval 'echo [v]'
eval "$(echo [v])"
x=[v]; eval $x
x=[v]; y=$x; eval "$y"
bash -c [v]
bash -c 'echo '[v]
bash -c "echo $HOME [v]"
bash -c 'echo [v]'
sh -ec '[v]'
x=[v]; bash -c "$x"
bash -c 'eval "$1"' bash [v]
bash -c '$0' [v]
sh -c 'sh -c "$1"' sh [v]
export X=[v]; bash -c 'eval "$X"'
bash <<END⏎echo [v]⏎END
cat <<END | sh⏎[v]⏎END
bash <<< [v]
bash <<'END'⏎echo [v]⏎END
echo [v] | bash
echo '[v]' | sh -s
echo [v] | sudo sh
echo [v] |& bash
{ echo [v]; } | sh
echo [v] | (sh)
echo [v] | tee x | sh
source <(echo [v])
. /dev/stdin <<< [v]
bash <(echo [v])
bash /dev/stdin <<< [v]
bash [v]
source [v]
. ./[v]
bash --rcfile [v]
x=[v]; echo "$x" | sh
printf %s [v] | bash -s -- a
docker exec it sh -c [v]
su -c [v]
su me -c '[v]'
echo [v] | xargs -I{} sh -c 'echo {}'
xargs [v]
xargs -I{} echo [v] < x
find . -exec [v] \;
find . -exec sh -c '[v]' \;
find . -execdir echo [v] \;
find . -ok [v] \;
watch ls [v]
parallel [v]
trap [v] EXIT
trap 'echo [v]' INT
alias x=[v]
env -S [v]
env -S'a [v]'
script -c [v]
flock x -c [v]
ssh host 'ls [v]'
ssh host ls [v]
ssh -o [v] host
make [v]
make X=[v]
complete -C [v] x
python3 -c 'print("[v]")'
python3 -c [v]
python3 -m [v]
python3 [v]
python3 - <<END⏎[v]⏎END
echo [v] | python3
echo [v] | node -
perl -ne '[v]'
perl -e [v]
ruby -e '[v]'
node -e [v]
node -p [v]
php -r [v]
deno eval [v]
lua -e [v]
awk '/[v]/' file
awk [v] x
awk -f [v]
sed 's/a/[v]/' file
sed -e [v]
sed -i 's/a/[v]/' x
sed --expression=[v]
sed -ne[v] x
jq [v] x
jq '.[v]' x
echo [v] | dc
psql -c [v]
echo [v] | psql
sqlite3 x.db [v]
mysql -e [v]
vim -c [v]
gdb -ex [v]
emacs --eval [v]
git -c [v] status
git -c core.pager=[v] log
git config core.pager [v]
git --exec-path=[v] log
git submodule foreach [v]
git bisect run [v]
git rebase --exec [v] main
git rebase -x [v] main
git clone --upload-pack=[v] x
git clone -u [v] x
git grep -O[v] x
tar --to-command=[v] -xf x
tar -I [v] -xf x
tar --checkpoint-action=exec=[v] -cf x y
rsync -e [v] a b
rsync --rsh=[v] a b
rg --pre [v] x
wget -e [v] x
sort --compress-program=[v] x
npx -c [v]
zip -TT [v] a b
fd -x [v]
echo $(( [v] + 1 ))
(( [v] > 1 ))
let [v]
let x=[v]
[[ [v] -gt 3 ]]
[[ 3 -lt [v] && a ]]
[[ -v [v] ]]
[ -v [v] ]
test -v [v]
unset [v]
read [v]
printf -v [v] x
declare -i n=[v]
export [v]
declare [v]
declare -n r=[v]
local [v]
declare -i n; n=[v]
x=[v]; echo $((x))
x=[v]; echo ${a[x]}
x=[v]; echo ${a[$x]}
a[[v]]=1
x=[v]; a[$x]=1
x=[v]; (( x++ ))
x=[v]; echo ${y:x:1}
x=[v]; echo ${!x}
x=[v]; echo ${x@P}
for ((i=0; i<[v]; i++)); do :; done
x=[v]; [[ $x -eq 1 ]]
x=[v]; [[ x -eq 1 ]]
read x <<< [v]; echo $((x))
x=[v]; let y=x
x=[v]; unset "$x"
echo $[ [v] ]
mapfile -t [v] < x
echo ${x:-[v]}
echo "$[v]"
echo ${x/[v]/}
[v]=1
echo x > [v]
echo x >> out/[v]
cat < [v]
echo x > '[v]'
echo x &> [v]
exec 3> [v]
x=[v]; echo a > $x
{ echo; } > [v]
echo a >| [v]
cat <> [v]
while read x; do :; done < [v]
bash x.sh > "[v]"
x="`printf %s. \"[v]\"`"
""")

# What people write; all of it works with an ordinary value.
HONEST = _commands(r"""
command -v [v]
timeout [v] make test
nice -n [v] pytest
sudo -u [v] ls
bash -o pipefail -c 'echo "$1" | cat' bash [v]
echo [v] > notes.md; cat notes.md; bash run.sh
declare -a x=([v]); echo "${x[0]}"
declare x=[v]; echo "$x"
export TITLE=[v]; node report.js
cat < <(printf %s [v])
while read x; do echo "$x"; done < <(printf %s [v])
for d in ${depends_on}; do cat ".summaries/$d.md"; done
echo ${#title}
cat < .summaries/$parent.md
eval "$(ssh-agent -s)"
x=5; echo $((x + 1)) [v]
$HOME/bin/tool [v]
(( n = 3 )); echo [v]
PYTHON=python3; $PYTHON run.py [v]
bash run.sh [v]
python3 run.py --name [v]
find . -name [v]
git commit -m [v]
git -C sub commit -m '[v]'
rg 'auth' [v] | head -10
echo [v] | xargs cat
awk -v x=[v] '{ print x }' f
sed -n 5p -- [v]
jq --arg x [v] .a f.json
ls WFS-[v]/x 2>/dev/null || echo no
cd [v]
grep -r '[v]' .
printf '%s\n' [v] >> notes.md
echo [v] > out.txt
gh issue create --title [v]
gemini -p "PURPOSE: it's\nCONTEXT: @**/* [v]\nRULES: $(cat ~/.rules/a.txt)"
while IFS= read -r dir; do cd "$dir" && gemini -p "$dir: [v]" || echo "not $dir"; done < ${session_dir}/a.txt
cat > notes.md <<'END'⏎# [v]⏎END
curl -d '{"title": "[v]"}' http://127.0.0.1:1/
npm test -- --grep [v]
docker run --rm img tool [v]
if [ -n '[v]' ]; then pytest -k [v]; fi
echo >&2 [v]
""")

# A value that begins with a dash would be an option.
TAKEN_FOR_OPTION = _commands(r"""
tool [v]
tool '[v]'
tool "[v]"
tool ''[v]
tool a [v] b
tool [v]/x
tool [w][v]
sudo -n tool [v]
x=[v]; tool $x
x=[v]; tool "$x"
a=([v]); tool "${a[@]}"
tool $(printf %s [v])
echo [v] | xargs tool
for x in [v]; do tool $x; done
f() { tool "$1"; }; f [v]
printf %s [v] | while read x; do tool $x; done
sh -c 'tool "$1"' sh [v]
tool -x -y [v]
rm -rf [v]
git log [v]
printf [v]
cat `echo [v]`
""")

# A dash at the beginning of the value means nothing here.
NEVER_AN_OPTION = _commands(r"""
tool -- [v]
tool a -- b [v]
tool --name=[v]
tool -n[v]
tool x[v]
echo [v]
echo a '[v]'
printf %s [v]
printf '%s %s' [v] [v]
x=[v]
[ [v] = a ]
test -n [v]
case [v] in a) ;; esac
cat <<< [v]
cat <<E⏎[v]⏎E
export X=[v]
X=[v] tool
x=[v]; tool -- $x
tool --a="$(echo [v])"
echo [v] | xargs tool --
for x in [v]; do echo $x; done
: [v]
echo [v] | grep -q x
""")
