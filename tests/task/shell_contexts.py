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

# In each the value would be evaluated again, or names a command or a file, or nothing shows that it does not.
# They are refused and never run: some would change the machine that they run on.
EVALUATED = _commands(r"""
curl -s -o run.sh [v] && sh run.sh
curl -s -orun.sh [v]; bash ./run.sh
curl -s --output=run.sh [v]; ./run.sh
curl -sO [v]; python3 setup.py
wget -qO run.sh [v] && sh run.sh
wget -q [v] && sh run.sh
cp [v] run.sh && sh run.sh
cp -- [v] run.sh && . ./run.sh
cp -t bin [v] && bin/tool
cp [v] bin/ && sh bin/run.sh
cp [v] . && sh run.sh
mv "[v]" lib && python3 lib/main.py
ln -s [v] run.sh; sh run.sh
install -m 755 [v] tool && ./tool
dd if=[v] of=run.sh; sh run.sh
rsync -a [v] run.sh; sh run.sh
tar -xf [v] && sh run.sh
tar -xf [v] -C out && sh out/run.sh
unzip -q [v] -d out && sh out/run.sh
split -l 9 [v]; sh xaa
sort -o run.sh [v]; sh run.sh
git clone [v] d && sh d/run.sh
python3 -m pip install [v]
python3.12 -m pip install [v]
python -I -m pip install -r [v]
python3 -m tox -e [v]
pip3 install [v]
uv pip install [v]
uv run [v]
uv tool run [v]
pipx run [v]
npx [v]
pnpm dlx [v]
pnpm --silent dlx [v]
npm install [v]
yarn add [v]
coverage run [v]
python3 -m coverage run [v]
go run [v]
cargo install --path [v]
gem install [v]
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
e=eval; $e [v]
$SHELL -c [v]
$BASH -c [v]
${BASH} -c [v]
"$BASH" -c "[v]"
/bin/b?sh -c [v]
/bin/ba* -c [v]
/bin/{bash,-c,[v]}
{bash,-c} [v]
{ev,e}val [v]
c=-c; bash $c [v]
c=-c; bash "$c" "[v]"
a=(bash -c); "${a[@]}" [v]
a=(bash -c); ${a[@]} [v]
a=(bash -c [v]); "${a[@]}"
set -- bash -c [v]; "$@"
c=-v; printf $c [v] x
x=[v]; y=x; echo $((y))
x=[v]; y=x; echo $(($y))
x=[v]; y=x; z=y; echo $((z+1))
n=[v]; echo $(($n))
n=[v]; echo $((${n}))
x=[v]; y=x; echo ${!y}
x=[v]; y='x'; declare -n r=$y; echo $((r))
declare -i q; for q in [v]; do :; done
declare -i q; read q <<< [v]
declare -i q; mapfile -t q <<< [v]
declare -ix q; q=[v]
typeset -i q; q=[v]
local -i q; q=[v]
f() { local -i q=[v]; }; f
export -i q; q=[v]
declare +x -i q; q=[v]
declare -i 'q'; q=[v]
o=-i; declare $o q; q=[v]
command declare -i q; q=[v]
builtin declare -i q; q=[v]
OPTIND=[v]; getopts a x
OPTIND=[v]
HISTCMD=[v]
SRANDOM=[v]
RANDOM=[v]
SECONDS=[v]
BASH_ARGV0=[v]
for OPTIND in [v]; do :; done
for HISTCMD in [v]; do :; done
for SRANDOM in [v]; do :; done
read OPTIND <<< [v]
read -r HISTCMD <<< [v]
export OPTIND=[v]
export SRANDOM=[v]
declare HISTCMD=[v]
declare -g OPTIND=[v]
: ${OPTIND:=$x}; x=[v]
x=[v]; unset OPTIND; : ${OPTIND:=$x}
printf -v OPTIND %s [v]
printf -v[v] x
printf -v 'a[0]' [v]; echo $((a))
printf -v q %s [v]; echo $((q))
printf -v q %s [v]; eval $q
echo [v] > z; bash < z
echo [v] > z; bash z
echo [v] > z; cat z | bash
echo [v] > z; $(<z)
echo [v] > z; eval "$(<z)"
echo [v] > z; . ./z
echo [v] > z; source z
echo [v] > z; x=$(<z); echo $((x))
echo [v] > n; n=$(<n); echo $((n))
echo [v] > n; read n < n; echo $((n))
echo [v] > z; cp z y; bash y
echo [v] > z; dd if=z of=y; sh y
echo [v] | tee z; sh z
echo [v] | tee z > /dev/null; sh z
echo [v] > z; ln -s z y; sh y
echo [v] > z; mv z y.sh; bash y.sh
echo [v] > notes.txt; cp notes.txt y.sh; bash y.sh
echo [v] > notes.txt; bash notes.txt
echo [v] > notes.txt; bash ./notes.txt
echo [v] > notes.txt; . ./notes.txt
echo [v] > notes.txt; cat notes.txt | sh
echo [v] > notes.txt; chmod +x notes.txt; ./notes.txt
echo [v] > notes.txt; BASH_ENV=notes.txt bash x.sh
echo [v] > notes.txt; export BASH_ENV=$PWD/notes.txt; bash x.sh
echo [v] > notes.txt; ENV=./notes.txt sh -i -c true
echo [v] > notes.txt; sed -f notes.txt x
echo [v] > notes.txt; awk -f notes.txt x
echo [v] > notes.txt; make -f notes.txt
echo [v] > notes.txt; python3 notes.txt
echo [v] > notes.txt; x=$(cat notes.txt); echo $((x))
echo [v] > notes.txt; mapfile -t x < notes.txt; echo $((x))
echo [v] > notes.txt; while read x; do echo $((x)); done < notes.txt
echo [v] > notes.txt; bash $(ls *.txt)
echo [v] > notes.txt; for f in *.txt; do bash $f; done
echo [v] > notes.txt; bash n*.txt
echo [v] > notes.txt; xargs -a notes.txt bash -c
echo [v] > notes.txt; xargs -I{} bash -c '{}' < notes.txt
echo [v] > notes.txt; find . -name notes.txt -exec bash {} \;
echo [v] > notes.txt; find . -name 'n*.txt' -exec sh -c '. {}' \;
echo [v] > notes.txt; trap '. ./notes.txt' EXIT
echo [v] > notes.txt; env bash notes.txt
echo [v] > notes.txt; git config alias.x '!sh notes.txt'; git x
echo [v] > z; sed -f z x
echo [v] > m.py; python3 -m m
echo [v] > sitecustomize.py; python3 x.py
echo [v] > sitecustomize.py; PYTHONPATH=. python3 -c 1
echo [v] > conftest.py; pytest
echo [v] > Makefile; make
echo [v] > .git/config; git status
echo [v] > z; ./z
echo [v] > z; chmod +x z; PATH=.:$PATH; z
exec 3> z; echo [v] >&3; bash z
exec > z; echo [v]; exec > /dev/null; bash z
{ echo [v]; } > z; bash z
f() { echo [v]; } > z; f; bash z
f() { echo [v]; }; f > z; bash z
if true; then echo [v]; fi > z; sh z
for x in [v]; do echo "$x"; done > z; sh z
printf %s [v] | cat > z; sh z
cat > z <<E⏎[v]⏎E⏎sh z
cat <<< [v] > z; sh z
echo [v] | sort -o z; sh z
echo [v] | dd of=z; sh z
echo [v] | split - z; sh zaa
echo [v] | awk '{print > "z"}'; sh z
echo [v] | sed 'w z'; sh z
echo [v] | sed -n 'w z'; . ./z
awk -v x=[v] 'BEGIN{print x > "z"}'; sh z
python3 -c 'import sys; open("z","w").write(sys.argv[1])' [v]; sh z
bash -c 'echo "$1" > z' bash [v]; sh z
bash -c 'echo "$1" > z; sh z' bash [v]
export X=[v]; env > z; . ./z
export X=[v]; printenv X | sh
export X=[v]; printenv X > z; sh z
x=[v]; declare -p x > z; . ./z
x=[v]; set > z; . ./z
f(){ echo [v]; }; f | bash
f(){ bash; }; f <<< [v]
f(){ bash; }; echo [v] | f
f(){ "$@"; }; f bash -c [v]
f(){ $1; }; f [v]
f(){ eval "$1"; }; f [v]
f(){ echo $(($1)); }; f [v]
f(){ sh -c "$1"; }; f [v]
f(){ cat | sh; }; f <<< [v]
f(){ read x; $x; }; f <<< [v]
f(){ read x; echo $((x)); }; echo [v] | f
f(){ make -f -; }; f <<< [v]
g(){ f; }; f(){ make -f -; }; echo [v] | g
echo() { eval "$@"; }; echo [v]
cat() { bash; }; echo [v] | cat
function tool { bash -c "$1"; }; tool [v]
echo [v] > >(bash)
exec 3> >(bash); echo [v] >&3
echo [v] | tee >(bash)
exec 3> >(make -f -); echo [v] >&3
split --filter=[v] x
echo [v] | split --filter=bash
echo [v] | split --filter='bash -s' -
echo x | split --filter="[v]"
echo [v] | make -f -
make -f - <<< [v]
make -f /dev/stdin <<< [v]
make -f <(echo [v])
make --eval=[v]
make SHELL=[v]
python3 -m timeit [v]
python3 -m timeit -s [v]
python3 -m pdb -c [v]
python3 -m code <<< [v]
python3 -c 'import sys; exec(sys.argv[1])' [v]
python3 -c 'import os,sys; os.system(sys.argv[1])' [v]
python3 -c 'eval(input())' <<< [v]
python3 - [v] <<< 'x'
python3 <(echo [v])
python3 -ic [v]
python3 -Wignore -c [v]
perl -ne 'print' [v]
perl -pe 1 [v]
perl -e 'system @ARGV' [v]
perl -e 'open F, shift' [v]
awk 'BEGIN{system(ARGV[1])}' [v]
awk -v x=[v] 'BEGIN{system(x)}'
awk -v x=[v] 'BEGIN{x | getline}'
awk -v x=[v] 'BEGIN{print | x}'
echo [v] | awk '{system($0)}'
echo [v] | awk '{print | "sh"}'
echo [v] | awk '{$0 | getline; print}'
echo [v] | sed 's/x/x/e'
echo [v] | sed -n '1e'
echo [v] | sed e
echo [v] | sed 's/.*/&/e'
echo [v] | sed '1!G;h;$!d;e'
sed -f <(echo [v]) x
sed --file=<(echo [v]) x
sed -s -e [v] x
sed -n "[v]p" x
sed "s/a/[v]/" x
x=[v]; awk -v y=$x '{print y}' f
x=[v]; timeout $x make test
x=[v]; nice -n $x make
x=[v]; env $x true
x=[v]; [ -n $x ]
x=[v]; [ $x = a ]
x=[v]; test $x
[ [v] -a -n x ]
[ [v] [v] ]
x=[v]; [ -v "$x" ]
o=-v; [ $o [v] ]
o=-v; test "$o" [v]
x=[v]; [[ -v $x ]]
x=[v]; [[ $x -eq 0 ]]
x=[v]; y=x; [[ y -gt 0 ]]
x=[v]; [[ 1 -lt x ]]
x=[v]; y='x'; [[ $y -eq 0 ]]
a[0]=[v]; echo $((a))
a=([v]); echo $((a[0]))
a=([v]); echo ${#a[a]}
declare -A m; m[k]=[v]; echo $((m[k]))
declare -A m; x=[v]; m[$x]=1
declare -A m; x=[v]; echo ${m[$x]}
x=[v]; a=(1 2); echo ${a[x]}
x=[v]; y=x; a=(1 2); echo ${a[y]}
x=[v]; y=x; s=abc; echo ${s:y}
x=[v]; s=abc; echo ${s:0:x}
x=[v]; y=x; (( y ))
x=[v]; y=x; (( z = y + 1 ))
x=[v]; let "y=x"
x=[v]; y=x; let z=y
x=[v]; for ((i=x;i<1;i++)); do :; done
x=[v]; y=$x; for ((i=0;i<y;i++)); do :; done
x=[v]; printf %d $((x))
x=[v]; y=x; echo $[$y]
x=[v]; exit $((x))
x=[v]; shift $((x))
x=[v]; echo {1..$((x))}
x=[v]; echo ${x@E}
x=[v]; y=x; echo ${!y@P}
x=[v]; y=x; echo "${!y}"
x=[v]; unset "a[$x]"
x=[v]; read "a[$x]" <<< 1
x=[v]; read a[$x] <<< 1
x=[v]; mapfile -C "$x" -c 1 a <<< 1
x=[v]; mapfile -t -C 'eval' -c 1 a <<< [v]
x=[v]; getopts "$x" y
x=[v]; wait -p "$x"
trap 'eval "$x"' EXIT; x=[v]
trap '$x' EXIT; x=[v]
trap 'echo $((x))' EXIT; x=[v]
trap -- [v] DEBUG
x=[v]; PS4=$x; set -x; :
x=[v]; PROMPT_COMMAND=$x
x=[v]; declare "a=$x"
x=[v]; declare $x
x=[v]; export "$x"
x=[v]; readonly "$x"
x=[v]; alias q="$x"; q
shopt -s expand_aliases; alias q=eval; q [v]
x=[v]; enable -f "$x" y
x=[v]; complete -W "$x" q; compgen -W "$x"
compgen -W [v]
x=[v]; compgen -C "$x"
x=[v]; bind -x "$x"
x=[v]; fc -s "$x"
x=[v]; hash -p "$x" ls; ls
hash -p /bin/bash q; q -c [v]
x=[v]; coproc $x
coproc bash; echo [v] >&${COPROC[1]}
x=[v]; command $x
x=[v]; exec $x
x=[v]; env $x
x=[v]; env -S "$x"
env bash -c [v]
env -i bash -c [v]
env -u X bash -c [v]
env -C / bash -c [v]
env --split-string=[v]
sudo bash -c [v]
sudo -u root -- bash -c [v]
nice bash -c [v]
nice -n 5 bash -c [v]
nohup bash -c [v]
time bash -c [v]
timeout 5 bash -c [v]
timeout -k 1 5 bash -c [v]
timeout --signal=9 5 bash -c [v]
stdbuf -oL bash -c [v]
setsid bash -c [v]
command -p bash -c [v]
exec bash -c [v]
exec -a x bash -c [v]
busybox sh -c [v]
setarch x86_64 bash -c [v]
linux64 bash -c [v]
x86_64 bash -c [v]
setpriv bash -c [v]
/lib64/ld-linux-x86-64.so.2 /bin/bash -c [v]
unshare bash -c [v]
fakeroot bash -c [v]
run-parts --arg=[v] .
strace -o x bash -c [v]
prlimit bash -c [v]
choom -n 0 -- bash -c [v]
script -qc [v] /dev/null
script -q -c "[v]" /dev/null
flock z bash -c [v]
flock z -c [v]
ssh-agent bash -c [v]
dbus-run-session -- bash -c [v]
xargs bash -c <<< [v]
xargs -I% bash -c % <<< [v]
echo [v] | xargs -I{} bash -c '{}'
echo [v] | xargs -I{} sh -c "echo {}"
echo [v] | xargs -0 bash -c
echo [v] | xargs sh -c
echo [v] | xargs -n1 env
echo [v] | xargs -d '\n' bash -c
echo [v] | xargs env
echo [v] | xargs xargs
echo [v] | xargs -i bash -c {}
echo [v] | xargs --replace bash -c {}
echo [v] | xargs timeout 5
find . -maxdepth 0 -exec bash -c [v] \;
find . -maxdepth 0 -exec bash -c 'eval "$1"' bash [v] \;
x=[v]; find . -maxdepth 0 -exec $x \;
c=-exec; find . -maxdepth 0 $c bash -c [v] \;
find . -maxdepth 0 -execdir sh -c "[v]" \;
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=[v] x
tar -cf /dev/null -I [v] x
tar cf /dev/null --use-compress-program=[v] x
tar cf x.tar --to-command [v] x
o=--checkpoint-action=exec=; tar -cf /dev/null --checkpoint=1 "$o"[v] x
zip -q x.zip x -T -TT [v]
git -c alias.x='!f' x [v]
git -c alias.x=![v] x
git -c core.fsmonitor=[v] status
git -c core.pager=[v] -p log
git config alias.x '!eval'; git x [v]
git config alias.x "![v]"; git x
git filter-branch --tree-filter [v]
git rebase -x [v] HEAD
git grep --open-files-in-pager=[v] x
git difftool -x [v]
git difftool --extcmd=[v]
git archive --remote=x --exec=[v] HEAD
git ls-remote --upload-pack=[v] .
git fetch --upload-pack=[v] .
git push --receive-pack=[v] .
git clone -c core.fsmonitor=[v] . y
git clone -u [v] . y
git send-email --sendmail-cmd=[v]
git daemon --access-hook=[v]
git init --template=[v] y
o=-c; git $o alias.x=![v] x
git [v]
rsync -e [v] x y:z
rsync --rsh=[v] x y:z
wget --use-askpass=[v] http://127.0.0.1:1/
wget -e [v] http://127.0.0.1:1/
curl -K [v]
curl -K - <<< [v]
vim -c [v] -c q
vim +[v] x
ed x <<< [v]
ex -sc [v] x
vi -e -s x <<< [v]
m4 <<< [v]
echo [v] | m4
m4 -D x=[v]
dc -e [v]
bc <<< [v]
gdb -batch -ex [v]
gdb -batch -x <(echo [v])
sqlite3 :memory: [v]
sqlite3 <<< [v]
echo [v] | sqlite3
tclsh <<< [v]
echo [v] | tclsh
tclsh <(echo [v])
expect -c [v]
node <<< [v]
node -r [v] x.js
node --import=[v] x.js
node -pe [v]
ruby -e [v]
perl [v]
perl -I [v] x.pl
perl -M[v] x.pl
perl -x <<< [v]
ssh -oProxyCommand=[v] localhost
ssh localhost [v]
scp -S [v] x localhost:y
man -P [v] ls
man --pager=[v] ls
less +[v] x
PAGER=[v] git log
GIT_PAGER=[v] git -p log
GIT_EXTERNAL_DIFF=[v] git diff
GIT_SSH=[v] git fetch
GIT_ASKPASS=[v] git fetch
x=[v]; PATH=$x:$PATH ls
PERL5OPT=[v] perl x.pl
PERL5LIB=[v] perl x.pl
PYTHONPATH=[v] python3 x.py
PYTHONSTARTUP=[v] python3 x.py
RUBYOPT=[v] ruby x.rb
MAKEFLAGS=[v] make
CC=[v] make
BASH_FUNC_x=[v] bash x.sh
env PATH=[v] ls
env BASH_ENV=[v] bash x.sh
env "LD_PRELOAD=[v]" ls
cmake -P <(echo [v])
ninja -f <(echo [v])
prove -e [v]
jshell <<< [v]
jrunscript -e [v]
tmux new -d [v]
screen -dm [v]
at now <<< [v]
batch <<< [v]
crontab - <<< [v]
sg root -c [v]
runuser -c [v]
chroot / bash -c [v]
watch -n1 -g [v]
parallel ::: [v]
entr [v]
npm exec -c [v]
docker run x sh -c [v]
docker exec it bash -c "[v]"
kubectl exec p -- sh -c [v]
poetry run python -c [v]
uv run python3 -c [v]
uv run bash -c [v]
msgexec bash -c [v]
msgfilter bash -c [v] < x
gcc -wrapper [v] x.c
gcc -x c -B[v] x.c
openssl req -engine [v]
socat - EXEC:[v]
nc -e [v] localhost 1
ld.so /bin/bash -c [v]
perf stat bash -c [v]
valgrind bash -c [v]
$'ev\x61l' [v]
$'\x65val' [v]
ev\⏎al [v]
"ev""al" [v]
e"v"'a'l [v]
ba''sh -c [v]
bash -c"[v]"
bash -"c" [v]
bash -xc [v]
bash --norc -c [v]
bash -O extglob -c [v]
bash +O extglob -c [v]
bash -s [v] <<< x
bash -s <<< [v]
bash -i <<< [v]
bash /dev/fd/0 <<< [v]
bash /proc/self/fd/0 <<< [v]
bash - <<< [v]
bash -- /dev/stdin <<< [v]
bash <(cat <<< [v])
. <(echo [v])
source /dev/stdin <<< [v]
. /dev/fd/3 3<<< [v]
bash <&3 3<<< [v]
exec 0<<< [v]; bash
exec < <(echo [v]); bash
{ bash; } <<< [v]
( sh ) <<< [v]
while sh; do break; done <<< [v]
if bash; then :; fi <<< [v]
bash << E⏎[v]⏎E
bash <<- E⏎[v]⏎E
cat <<E⏎`bash -c "$x"`⏎E⏎x=[v]
x=[v]; cat <<E⏎`$x`⏎E
x=[v]; cat <<E⏎$($x)⏎E
x=[v]; echo "`$x`"
x=[v]; echo "$(eval $x)"
x=[v]; echo `eval $x`
x=[v]; echo <($x)
x=[v]; echo "${y:-$($x)}"
x=[v]; echo ${y:-`$x`}
x=[v]; case $($x) in a) ;; esac
x=[v]; y=$(bash -c "$x")
x=[v]; y=($(bash <<< "$x"))
x=[v]; [[ $($x) ]]
x=[v]; : "$(( $(echo x) ))"
y=$(echo x); x=[v]; echo $((y))
read y <<< x; x=[v]; echo $((y))
for y in x; do echo $((y)); done; x=[v]
a=(x); x=[v]; echo $((a))
a=(x); x=[v]; echo $((a[0]))
y=${z:-x}; x=[v]; echo $((y))
: ${y:=x}; x=[v]; echo $((y))
y+=x; x=[v]; echo $((y))
export y=x x=[v]; bash -c 'echo $((y))'
export x=[v]; bash -c 'echo $((x))'
x=[v] bash -c 'echo $((x))'
x=[v] bash -c '$x'
x=[v] bash -c 'y=$x; eval "$y"'
env x=[v] bash -c 'echo $((x))'
bash -c 'echo $(($1))' bash [v]
bash -c '"$@"' bash [v]
bash -c '"$@"' bash bash -c [v]
bash -c 'bash -c "$1"' bash [v]
bash -c 'set -- "$@"; $1' bash [v]
bash -c 'read x; $x' <<< [v]
bash -c 'cat | sh' <<< [v]
bash -c 'sh' <<< [v]
bash -c 'x=$(cat); echo $((x))' <<< [v]
bash -c 'eval "$0"' [v]
bash -c '. "$1"' bash <(echo [v])
sh -c '$0' [v]
sh -c 'eval "$X"' ; export X=[v]
zsh -c 'echo' zsh [v]
select x in [v]; do $x; done <<< 1
set -k; bash x.sh BASH_ENV=[v]
set -- [v]; eval "$1"
set -- [v]; . "$1"
set [v]; $1
shift; x=[v]; "${x}"
x=[v]; ${x}
x=[v]; "${x:0}"
x=[v]; ${x%% *}
x=[v]; ~/$x
x=[v]; ./$x
x=[v]; HOME=/bin; ~/bash -c "$x"
HOME=/bin; ~/bash -c [v]
HOME=/bin; $HOME/bash -c [v]
~root/bash -c [v]
time -p eval [v]
! eval [v]
\. ./[v]
"." "[v]"
command . [v]
builtin source [v]
builtin . <(echo [v])
coproc eval [v]
if eval [v]; then :; fi
x=1 eval [v]
declare x=[v] y=$((x))
x=[v] y=$((x)) true
declare -a a=("$x"); x=[v]; echo $((a))
IFS=: read -r a b <<< [v]; echo $((b))
IFS=[v] read x <<< a
readarray -t a <<< [v]; echo $((a))
readarray -t a <<< [v]; ${a[0]}
mapfile -t < <(echo [v]); echo $((MAPFILE))
read <<< [v]; echo $((REPLY))
read <<< [v]; $REPLY
[[ [v] =~ (.*) ]]; ${BASH_REMATCH[1]}
[[ [v] =~ (.*) ]]; echo $((BASH_REMATCH))
: [v]; $_
: [v]; echo $((_))
: [v]; bash -c "$_"
echo [v]; eval "$BASH_COMMAND"
echo [v] 2>&1 | bash 2>&1
echo [v] |& sh
cat <<E | bash⏎[v]⏎E
cat <<E | tee x | bash -s⏎[v]⏎E
tee >(sh) <<< [v]
sh <<< "$(echo [v])"
sh <<< $(cat <<< [v])
yes [v] | head -1 | sh
echo [v] | tac | sh
echo [v] | env sh
echo [v] | nice sh
echo [v] | timeout 5 sh
echo [v] | sudo -n sh
echo [v] | command sh
echo [v] | exec sh
echo [v] | (cat | sh)
echo [v] | { read x; eval "$x"; }
echo [v] | while read x; do eval "$x"; done
echo [v] | while read x; do $x; done
echo [v] | if true; then sh; fi
echo [v] | for i in 1; do sh; done
echo [v] | case a in a) sh ;; esac
awk "{ print \"[v]\" }" x
awk -f <(echo [v])
awk -f- <<< [v]
gawk -e [v]
gawk -i [v] 1
awk "[v]"
c=-f; awk $c <(echo [v]) x
jq -f <(echo [v])
jq "[v]" x
perl -lane "[v]" x
envsubst < <(echo [v]) | sh
printf '%b' [v] | sh
base64 -d <<< [v] | bash
rev <<< [v] | bash
tr a b <<< [v] | bash
xxd -r -p <<< [v] | bash
patch -p0 <<< [v]
cpio -i <<< [v]
echo [v] | patch; sh x
echo [v] | ed - x
pip install [v]
perl -MCPAN -e [v]
python3 -c "$(echo [v])"
python3 -c "x='[v]'"
python3 -X importtime -c [v]
python3 -m runpy [v]
python3 -m trace -t [v]
python3 -m cProfile [v]
python3 -m doctest [v]
python3 -m sqlite3 :memory: [v]
python3 -m pydoc [v]
ipython -c [v]
timeout 5 python3 -c [v]
nohup python3 - <<< [v]
env python3 - <<< [v]
/usr/bin/env python3 -c [v]
/usr/bin/env -S bash -c [v]
python3.11 -c [v]
python3 -uc [v]
python3 -Bc "[v]"
PYTHON=python3; $PYTHON run.py [v]
x=[v]; printf -v y '%s' "$x"; (( y ))
x=[v]; y=$x true; echo $((y))
x=[v]; f() { local y=x; echo $((y)); }; f
x=[v]; f() { echo $(($1)); }; f x
x=[v]; f() { (( $1 > 0 )); }; f x
x=[v]; f() { local -n r=$1; echo $((r)); }; f x
x=[v]; f() { echo ${!1}; }; f x
x=[v]; set -- x; echo $(($1))
x=[v]; set -- x; echo $(($@))
x=[v]; for i; do echo $((i)); done
f() { for i; do echo $((i)); done; }; f [v]
f() { for i do eval $i; done; }; f [v]
f() { while (( $# )); do echo $(($1)); shift; done; }; f [v]
f() { case $1 in *) $1 ;; esac; }; f [v]
x=[v]; a=(1 2 3); echo "${a[@]:$x:1}"
x=[v]; a=(1 2 3); echo "${@:$x}"
x=[v]; echo "${*:x}"
x=[v]; a=(); a[x]=1
x=[v]; a=([x]=1)
x=[v]; a=([$x]=1)
a=([[v]]=1)
x=[v]; declare -a a=([x]=1)
x=[v]; declare 'a[x]=1'
x=[v]; a+=([x]=1)
x=[v]; echo ${a[x]:-b}
x=[v]; echo ${#a[x]}
x=[v]; echo "${a[$x]}"
x=[v]; unset a[x]
x=[v]; unset 'a[x]'
x=[v]; [[ -v a[x] ]]
x=[v]; [[ -v 'a[x]' ]]
x=[v]; [ -v 'a[x]' ]
x=[v]; test -v 'a[x]'
x=[v]; read 'a[x]' <<< 1
x=[v]; printf -v 'a[x]' 1
x=[v]; mapfile -O "$x" a <<< 1
x=[v]; let 'a[x]=1'
x=[v]; let a[x]=1
x=[v]; echo $((a[x]))
x=[v]; echo $(( ${a[x]} ))
x=[v]; y=1; echo $((y ? x : 0))
x=[v]; echo $(( 1 + "x" ))
x=[v]; echo $(( 'x' ))
x=[v]; echo $((1,x))
x=[v]; : $((y=x));
x=[v]; y=0; : $((y+=x))
x=[v]; y=0; (( y=x ));
x=[v]; y=0; for ((;y<x;)); do break; done
x=[v]; for ((i=0;i<1;i=x)); do break; done
x=[v]; echo $((x)) > /dev/null
x=[v]; echo "$((x))"
x=[v]; cat <<E⏎$((x))⏎E
x=[v]; cat <<< $((x))
x=[v]; y=$((x))
x=[v]; a[$((x))]=1
x=[v]; sleep $((x))
x=[v]; case $((x)) in 1) ;; esac
x=[v]; [[ $((x)) ]]
x=[v]; [[ x -ge 0 || 1 ]]
x=[v]; [[ ! x -ge 0 ]]
x=[v]; [[ ( x -ge 0 ) ]]
x=[v]; [[ 1 -ge $x ]]
x=[v]; [[ "$x" -eq 1 ]]
x=[v]; y=$x; z=$y; [[ $z -eq 1 ]]
x=[v]; [[ a[x] -eq 1 ]]
x=[v]; if (( x )); then :; fi
x=[v]; while (( x )); do break; done
x=[v]; until (( x )); do break; done
x=[v]; ! (( x ))
x=[v]; (( x )) | cat
x=[v]; ( (( x )) )
x=[v]; { (( x )); }
x=[v]; $(( x ))
x=[v]; declare -i y; y=x
x=[v]; declare -i y=x
x=[v]; declare -ai y=(x)
x=[v]; local -i y=x
x=[v]; typeset -i y; read y <<< x
x=[v]; declare -i y; y+=x
x=[v]; declare -i y; for y in x; do :; done
x=[v]; declare -i y; : ${y:=x}
x=[v]; readonly -i y=x
x=[v]; export -i y=x
x=[v]; declare -r -i y=x
x=[v]; declare -r y -i z=x
x=[v]; command export "y=$x"
x=[v]; n=3; n=$x; echo $((n))
n=1; n+=[v]; echo $((n))
n=1; read n <<< [v]; echo $((n))
n=1; f() { n=$1; }; f [v]; echo $((n))
n=1; printf -v n %s [v]; echo $((n))
n=1; for n in [v]; do echo $((n)); done
n=1; echo [v] | while read n; do echo $((n)); done
n=1; : ${m:=[v]}; echo $((m))
n=$(wc -l < f; echo x); x=[v]; echo $((n))
n=$(echo x | cat); x=[v]; echo $((n))
n=$(echo x; ls | wc -l); x=[v]; echo $((n))
n=$(seq 1 2; echo x); x=[v]; echo $((n))
wc() { echo x; }; n=$(ls | wc -l); x=[v]; echo $((n))
SECONDS=[v]; echo $SECONDS
declare SECONDS=[v]
SECONDS+=[v]
RANDOM+=[v]
OPTIND+=[v]
OPTIND=1 OPTIND=[v] true
read -r SECONDS < <(echo [v])
mapfile -t OPTIND <<< [v]
getopts a OPTIND [v]
select OPTIND in [v]; do break; done <<< 1
f() { local OPTIND=[v]; }; f
f() { local SRANDOM=$1; }; f [v]
LINENO=[v]
EPOCHSECONDS=[v]
BASH_SUBSHELL=[v]
COLUMNS=[v]
TMOUT=[v]
HISTSIZE=[v]
HISTCONTROL=[v]; HISTFILE=[v]
GROUPS=[v]
FUNCNAME=[v]
DIRSTACK=([v])
BASH_ALIASES[x]=[v]; x
BASH_CMDS[x]=[v]; x
shopt -s expand_aliases⏎BASH_ALIASES[x]=[v]⏎x
hash -p [v] x; x
BASH_CMDS=([x]=/bin/bash); x -c [v]
BASH_CMDS[ls]=/bin/bash; ls -c [v]
PATH=/bin; bash -c [v]
cp /bin/bash tool; ./tool -c [v]
ln -s /bin/bash tool; ./tool -c [v]
ln -s /bin/bash ./ls; ./ls -c [v]
cp /bin/bash ./cat; ./cat -c [v]
ln -s /bin/bash ls; PATH=.:$PATH ls -c [v]
ln -s /bin/bash ls; PATH=.:$PATH; ls -c [v]
install /bin/bash t; ./t -c [v]
cat /bin/bash > t; chmod +x t; ./t -c [v]
d=/bin; $d/bash -c [v]
d=/bin/; ${d}bash -c [v]
b=bash; $b -c [v]
b=bash; /bin/$b -c [v]
b=ba; ${b}sh -c [v]
"ba$(echo sh)" -c [v]
$(echo bash) -c [v]
`echo bash` -c [v]
$(which bash) -c [v]
$(command -v bash) -c [v]
$0 -c [v]
"$0" -c [v]
/proc/self/exe -c [v]
/proc/$$/exe -c [v]
/proc/$PPID/exe -c [v]
exec /proc/self/exe -c [v]
../../../../bin/bash -c [v]
/usr/bin/../bin/sh -c [v]
//bin//sh -c [v]
/bin/./dash -c [v]
+(b)ash -c [v]
/bin/[b]ash -c [v]
/bin/bas[h] -c [v]
~/../bin/bash -c [v]
bash --rcfile <(echo [v]) -i -c true
bash --init-file <(echo [v]) -i
bash -l -c [v]
bash -lc [v]
bash -euc [v]
bash -e -u -o pipefail -c [v]
bash --posix -c [v]
bash --debugger -c [v]
bash -o pipefail [v]
bash -O extglob [v]
bash -x [v]
bash -- [v]
bash +x [v]
bash "$x" [v]
bash ${x:--c} [v]
bash $(echo -c) [v]
bash {-c,[v]}
bash x.sh; bash -c [v]
dash -c [v]
rbash -c [v]
sh -c "$(echo [v])"
sh -c "echo '[v]'"
sh -c 'echo '"'"[v]"'"
sh -c $'echo [v]'
sh -c "$(cat <<E⏎[v]⏎E⏎)"
sh -c "$(< <(echo [v]))"
bash -c "$0" [v]
bash -c "$1" bash [v]
bash -c "${1}" bash [v]
bash -c '$1' bash "[v]"
bash -c 'sh -c "$@"' bash [v]
bash -c 'exec "$@"' bash [v]
bash -c 'exec "$@"' bash sh -c [v]
bash -c 'command "$@"' bash [v]
bash -c 'env "$@"' bash [v]
bash -c 'xargs env <<< "$1"' bash [v]
bash -c 'source /dev/stdin' <<< [v]
bash -c 'source <(cat)' <<< [v]
bash -c 'mapfile -t a; "${a[@]}"' <<< [v]
bash -c 'read -r x; bash -c "$x"' <<< [v]
bash -c 'trap "$1" EXIT' bash [v]
bash -c 'PS4=$1; set -x; :' bash [v]
bash -c 'BASH_ENV=$1 bash x.sh' bash <(echo [v])
bash -c 'f() { "$@"; }; f "$@"' bash sh -c [v]
sh -c 'sh' <<< [v]
sh -c 'cat > z; sh z' <<< [v]
sh -c 'tee z; . ./z' <<< [v]
x=[v]; export x; watch -n1 -g 'eval $x'
x=[v]; export x; env sh -c 'eval "$x"'
x=[v]; export x; python3 -c 'import os; os.system(os.environ["x"])'
x=[v]; export x; perl -e 'system $ENV{x}'
x=[v]; export x; awk 'BEGIN{system(ENVIRON["x"])}'
x=[v]; export x; node -e 'require("child_process").execSync(process.env.x)'
x=[v]; export x; find . -maxdepth 0 -exec sh -c 'eval "$x"' \;
x=[v]; export x; echo a | xargs sh -c 'eval "$x"'
x=[v]; export x; timeout 5 sh -c 'eval $x'
x=[v]; export x; sh -c 'echo $((x))'
x=[v]; export x; sh -c '$x'
echo [v] | bash -c 'bash'
echo [v] | bash -c 'cat | bash'
echo [v] | bash -c 'source /dev/stdin'
echo [v] | bash -c 'read x; $x'
echo [v] | python3 -c 'exec(input())'
echo [v] | python3 -c 'import sys; eval(sys.stdin.read())'
echo [v] | python3 -c 'import code; code.interact()'
echo [v] | python3 -i
echo [v] | python3 -
echo [v] | python3 /dev/stdin
echo [v] | perl
echo [v] | perl -
echo [v] | perl -ne 'system $_'
echo [v] | perl -pe 's/.*/`$&`/e'
echo [v] | node
echo [v] | awk -f -
echo [v] | awk -f /dev/stdin
echo [v] | sed -f -
echo [v] | sed -f /dev/stdin x
echo [v] | sed -ne 'e'
echo [v] | sed 's/^/touch /e'
echo [v] | sed 's|x|y|e'
echo [v] | sed 's/x/y/;e'
echo [v] | sed 's/x/y/ge'
echo [v] | sed --expression='s/x/y/e'
echo [v] | sed -e 's/a/b/' -e 'e'
echo [v] | sed -E 's/(.*)/\1/e'
echo [v] | sed $'s/x/y/e'
echo [v] | sed "s/x/y/e"
c='s/x/y/e'; echo [v] | sed "$c"
echo [v] | sed '1{e⏎}'
echo [v] | sed 's/a/b/w z'; sh z
echo [v] | sed -n '/x/w z'; sh z
echo [v] | gawk '{ print |& "sh" }'
echo [v] | awk '{ cmd = $0; cmd | getline }'
echo [v] | awk '{ printf "%s", $0 > "z" }'; . ./z
echo [v] | awk '{ print >> "z" }'; . ./z
echo [v] | vim -e -s -
echo [v] | vi -es
echo [v] | ed
echo [v] | ex
echo [v] | m4 -
echo [v] | bc
echo [v] | gdb
echo [v] | at now
echo [v] | crontab
echo [v] | expect
echo [v] | expect -
echo [v] | busybox sh
echo [v] | ssh localhost
echo [v] | ssh localhost sh
echo [v] | su -
echo [v] | sudo -S sh
echo [v] | script
echo [v] | parallel
echo [v] | xargs -I{} {}
echo [v] | xargs -n 1 -I X sh -c X
echo [v] | xargs -L1 bash
echo [v] | xargs -t -I{} bash -c "{}"
echo [v] | xargs -P2 -n1 bash -c
echo [v] | xargs sudo
echo [v] | xargs nice
echo [v] | xargs nohup
echo [v] | xargs stdbuf -o0
echo [v] | xargs find . -exec
echo [v] | xargs tar
echo [v] | xargs git
echo [v] | xargs awk
echo [v] | xargs sed
echo [v] | xargs python3
echo [v] | xargs python3 -c
echo [v] | xargs make
echo [v] | xargs busybox
echo [v] | xargs printf
echo [v] | xargs test
echo [v] | xargs [
echo [v] | xargs -I{} printf -v {} x
echo [v] | tee >(xargs bash -c)
echo [v] | tee >(cat > z); sh z
echo [v] > >(cat > z); sh z
echo [v] > >(tee z); . ./z
echo [v] | cat - > z; sh ./z
echo [v] | head -1 >> z; sh z
echo [v] 2> z >&2; sh z
ls [v] 2> z; sh z
cat [v] 2> z; sh z
cat [v] &> z; sh z
{ echo [v] >&2; } 2> z; sh z
set -x; : [v] 2> z; sh z
exec 2> z; set -x; : [v]; set +x; sh z
exec 4<> z; echo [v] >&4; sh z
exec {fd}> z; echo [v] >&$fd; sh z
echo [v] >| z; sh z
echo [v] 1> z; sh z
echo [v] &>> z; sh z
echo [v] > "z"; sh 'z'
f=z; echo [v] > $f; sh z
f=z; echo [v] > "$f"; sh $f
f=run.sh; echo [v] > "$f"; bash run.sh
echo [v] > $(echo z); sh z
echo [v] > ./z; cd .; sh ./z
mkdir d; cd d; echo [v] > z.txt; cd ..; sh d/z.txt
echo [v] > a.txt; cat a.txt > z; sh z
echo [v] > a.txt; cp a.txt z; sh z
echo [v] > a.txt; mv a.txt z; sh z
echo [v] > a.txt; ln a.txt z; sh z
echo [v] > a.txt; ln -s a.txt z; . ./z
echo [v] > a.txt; install -m755 a.txt z; ./z
echo [v] > a.txt; dd if=a.txt of=z; sh z
echo [v] > a.txt; tee z < a.txt; sh z
echo [v] > a.txt; split a.txt z; sh zaa
echo [v] > a.txt; tar cf t.tar a.txt; tar xf t.tar; sh a.txt
echo [v] > a.txt; rsync a.txt z; sh z
echo [v] > a.txt; sed 's/a/a/' a.txt > z; sh z
echo [v] > a.txt; awk 1 a.txt > z; sh z
echo [v] > a.txt; sort -o z a.txt; sh z
echo [v] > a.txt; paste a.txt > z; sh z
echo [v] > a.txt; bash -c "$(cat a.txt)"
echo [v] > a.txt; bash -c 'sh a.txt'
echo [v] > a.txt; bash -c '. ./a.txt'
echo [v] > a.txt; eval "$(cat a.txt)"
echo [v] > a.txt; $(cat a.txt)
echo [v] > a.txt; while read -r l; do $l; done < a.txt
echo [v] > a.txt; xargs bash -c < a.txt
echo [v] > a.txt; xargs -I{} sh -c {} < a.txt
echo [v] > a.txt; python3 -c 'exec(open("a.txt").read())'
echo [v] > a.txt; sh -s < a.txt
echo [v] > a.txt; sh 0< a.txt
echo [v] > a.txt; exec < a.txt; sh
echo [v] > a.txt; . a.txt
echo [v] > a.txt; source a.txt
echo [v] > a.txt; command . ./a.txt
echo [v] > a.txt; builtin source a.txt
echo [v] > a.txt; bash --rcfile a.txt -i
echo [v] > a.txt; BASH_ENV=a.txt; export BASH_ENV; bash x.sh
echo [v] > a.txt; env BASH_ENV=a.txt bash x.sh
echo [v] > a.txt; make -f a.txt
echo [v] > a.txt; make -fa.txt
echo [v] > a.txt; make --file=a.txt
echo [v] > a.txt; MAKEFILES=a.txt make
echo [v] > a.txt; awk -f a.txt
echo [v] > a.txt; awk -fa.txt x
echo [v] > a.txt; sed -fa.txt x
echo [v] > a.txt; sed --file=a.txt x
echo [v] > a.txt; gdb -x a.txt
echo [v] > a.txt; vim -S a.txt
echo [v] > a.txt; python3 a.txt
echo [v] > a.txt; perl a.txt
echo [v] > a.txt; node a.txt
echo [v] > a.txt; tclsh a.txt
echo [v] > a.txt; m4 a.txt
echo [v] > a.txt; sqlite3 x.db < a.txt
echo [v] > a.txt; crontab a.txt
echo [v] > a.txt; at -f a.txt now
echo [v] > a.txt; git config include.path ../a.txt; git status
echo [v] > a.txt; git -c include.path=$PWD/a.txt status
echo [v] > a.txt; GIT_CONFIG_GLOBAL=a.txt git status
echo [v] > a.txt; git config -f a.txt x.y z
echo [v] > a.txt; find . -name a.txt -exec sh {} \;
echo [v] > a.txt; find . -name a.txt | xargs sh
echo [v] > a.txt; ls *.txt | xargs sh
echo [v] > a.txt; for f in *.txt; do sh "$f"; done
echo [v] > a.txt; for f in *.txt; do . ./$f; done
echo [v] > a.txt; sh *.txt
echo [v] > a.txt; sh a.*
echo [v] > a.txt; sh ?.txt
echo [v] > a.txt; sh {a,b}.txt
echo [v] > a.txt; f=a.txt; sh $f
echo [v] > a.txt; f() { sh "$1"; }; f a.txt
echo [v] > a.txt; run-parts .
echo [v] > a.txt; trap 'sh a.txt' EXIT
echo [v] > a.txt; coproc sh a.txt
echo [v] > a.txt; timeout 5 sh a.txt
echo [v] > a.txt; nohup sh a.txt
echo [v] > a.txt; time sh a.txt
echo [v] > a.txt; docker run x sh a.txt
echo [v] > a.txt; uv run python a.txt
echo [v] > a.txt; poetry run python a.txt
""")

# What people write; all of it works with an ordinary value.
HONEST = _commands(r"""
cp [v] backup.txt && bash run.sh
cp template.md [v] && bash run.sh
mkdir -p [v] && bash run.sh
touch [v] && sh run.sh
curl -s [v] | jq .a
curl -s -o data.json [v] && jq .a data.json
tar -cf out.tar [v] && bash run.sh
python3 -m json.tool [v]
python3 -m venv [v]
uv --version; echo [v]
go test ./[v]
cargo test [v]
coverage report; echo [v]
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
xargs -I{} echo [v] < x
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
docker run --rm img ./tool [v]
if [ -n '[v]' ]; then pytest -k [v]; fi
echo >&2 [v]
git commit -m "[v]"
git commit -am "[v]" --no-verify
git add -A && git commit -q -m "[v]: done" --author="[v] <[v]>"
git log --oneline --grep="[v]" -n 5
git log -S"[v]" -- src
git checkout -b "feature/[v]"
git diff --stat "[v]"...HEAD | tail -1
git show "[v]:README.md" | head -50
git stash push -m "[v]"; git log -p --follow -- "[v]"
git ls-files "[v]" | wc -l
git grep -n "[v]" -- '*.py'
pytest -k "[v]"
pytest -q -x tests/[v]
python3 -m pytest -k "[v]" -x
.venv/bin/pytest -k "[v]"
source .venv/bin/activate && pytest -k "[v]"
npm test -- [v]
npm run lint -- --fix "[v]"
npm run test:unit -- -t "[v]"
yarn test [v]
mkdir -p "[v]"
mkdir -p "[v]" && cd "[v]" && git init
mkdir -p "[v]" && n=$(git rev-parse HEAD) && ./tool $n
cd [v] && make test
cd "[v]" && npm test
cd "[v]" && cargo test
cd [v] && ls -la && cat README.md
echo "[v]" > notes.txt
echo "[v]" >> notes.md && git add notes.md && git commit -m "notes: [v]"
echo "[v]" > notes.txt; cat notes.txt | grep foo
cat [v] | grep [v]
cat "[v]" | head -20 | sort | uniq -c
for f in [v] [v]; do wc -l "$f"; done
for f in $files; do grep -n "[v]" "$f"; done
for f in src/*.py; do grep -n "[v]" "$f"; done
if [ "[v]" = yes ]; then echo ok; fi
if [ -f "[v]" ]; then cat "[v]"; else echo none; fi
if [[ "[v]" == *foo* ]]; then echo foo; fi
if [[ -z "[v]" ]]; then exit 1; fi
[ -n "[v]" ] && echo "[v]"
test -d "[v]" || mkdir "[v]"
case "[v]" in a|b) echo 1 ;; *) echo 2 ;; esac
case "$type" in feature) npm test ;; *) true ;; esac
set -euo pipefail; grep -r "[v]" src | wc -l
set -e⏎cd src⏎rg -n "[v]" .⏎
find . -name "[v]" -type f | head
find src -name '*.py' | xargs grep -n "[v]"
find src -name '*.py' -exec wc -l {} + | tail -1; echo "[v]"
find . -name '*.md' -print0 | xargs -0 grep -l "[v]"
grep -rn "[v]" --include='*.py' src | head -20
rg -n --glob '*.ts' "[v]" src
rg "[v]" -t py -l | xargs wc -l
ls "[v]"/*.md
ls -la docs/[v]/ 2>/dev/null || echo none
awk -F: -v n="[v]" '$1 == n { print $2 }' f.txt
sed -n '1,20p' -- "[v]"
sed 's/a/b/g' "[v]"
jq -r --arg k "[v]" '.[$k]' f.json
jq -r .name package.json; echo "[v]"
curl -s -X POST -d "[v]" http://127.0.0.1:1/
curl -sS -H "Authorization: Bearer $TOKEN" -d '{"title":"[v]"}' http://127.0.0.1:1/
gh issue create --title "[v]" --body "[v]"
gh pr comment 5 --body "[v]"
gemini -p "analyze [v]"
gemini -m $MODEL -p "analyze [v]"
claude -p "[v]" --output-format json
codex --full-auto exec "Implement [v]"
codex exec "Implement [v]"
~/.claude/scripts/gemini-wrapper -p "[v]"
$HOME/bin/tool "[v]"
./scripts/check.sh "[v]"
bash scripts/check.sh "[v]"
bash -c 'echo "$1"' bash "[v]"
python3 scripts/check.py --title "[v]"
python3 -c 'import sys, json; print(json.dumps(sys.argv[1]))' "[v]"
node scripts/check.js "[v]"
TITLE="[v]" node scripts/check.js
TITLE=[v] npm run report
NODE_ENV=test npm test -- "[v]"
PYTHONPATH=src pytest -k "[v]"
GIT_PAGER=cat git log "[v]"
export TITLE="[v]"; ./report
printf '%s\n' "[v]" | tee -a notes.md
printf '%s\n' "[v]" | tee out.txt
echo "[v]" | tee notes.md | wc -c
echo "[v]" | gemini -p "review this"
echo "[v]" | tr ' ' '\n' | sort -u
echo "[v]" | python3 scripts/filter.py
echo "[v]" | jq -R .
echo "[v]" | sed 's/ /\n/g'
echo "[v]" | while read -r line; do echo "- $line"; done
while IFS= read -r f; do cat "$f"; done < list.txt; echo "[v]"
x=$(git rev-parse --short HEAD); echo "$x: [v]"
n=$(ls | wc -l); if [ "$n" -gt 3 ]; then echo "[v]"; fi
n=$(ls | wc -l); if (( n > 3 )); then echo "[v]"; fi
i=0; for f in a b; do i=$((i+1)); echo "$i $f [v]"; done
for i in {1..3}; do echo "$i [v]"; done
for ((i=0; i<3; i++)); do echo "$i [v]"; done
cat > notes.md <<'E'⏎# [v]⏎⏎`code` and $5⏎E
cat <<E⏎[v] $HOME⏎E
cat <<E > notes.md⏎- [v]⏎E⏎git add notes.md
cp "[v]" "[v]"
mv -- "[v]" "[v]"
rm -rf -- "[v]"
tar -czf out.tgz "[v]"
diff -u "[v]" "[v]" || true
wc -l < README.md; echo [v]
command -v rg >/dev/null && rg "[v]" || grep -r "[v]" .
timeout 60 npm test -- "[v]"
time pytest -k "[v]"
docker run --rm -v "$PWD:/w" img ./tool "[v]"
docker compose up -d; echo "[v]"
go test ./... -run "[v]"
cargo test "[v]" -- --nocapture
mvn -q test -Dtest="[v]"
dotnet test --filter "[v]"
./gradlew test --tests "[v]"
npx jest -t foo; echo "[v]"
make build; echo "[v]"
eslint "[v]" && prettier --check "[v]"
uv run pytest -k "[v]"
poetry run pytest -k "[v]"
trap 'rm -f tmp.txt' EXIT; echo "[v]" > tmp.txt; cat tmp.txt
f() { echo "$1: $2"; }; f "[v]" "[v]"
log() { echo "[$(date +%T)] $*" >&2; }; log "[v]"
arr=("[v]" "[v]"); for a in "${arr[@]}"; do echo "$a"; done
arr=("[v]" "[v]"); wc -l -- "${arr[@]}"
IFS=',' read -ra parts <<< "[v]"; for p in "${parts[@]}"; do echo "$p"; done
x="[v]"; echo "${x^^}" "${x//a/b}" "${#x}" "${x:0:10}"
x="[v]"; if [ "${#x}" -gt 10 ]; then echo long; fi
x="[v]"; echo "${x:-none}"
echo "[v]" | head -c 100
read -r first _ <<< "[v]"; echo "$first"
date +%s; echo $(( $(date +%s) - 5 )) "[v]"
base=$(basename "[v]" .md); echo "$base"
name=$(basename "[v]" .md); mkdir -p "out/$name"
dir=$(dirname "[v]"); cd "$dir" && ls
grep -c "[v]" README.md || true
echo "[v]" > "out/$id.md"
cat .summaries/$parent-summary.md
for dep in ${depends_on}; do cat .summaries/$dep-summary.md 2>/dev/null || echo "No summary for $dep"; done
echo $id $title
n=$(grep "[v]" src/*.py | wc -l); (( n > 0 ))
n=$(grep "[v]" src/*.py | wc -l); if (( n > 0 )); then echo found; fi
n=$(grep -c "[v]" f); [ "$n" -gt 0 ] && echo yes
sort -u [v] -o [v]
git log -p --no-ext-diff "[v]"
git fetch origin "[v]"
git checkout "[v]" && git log --oneline -3
git merge --no-ff -m "merge: [v]" "[v]"
git diff --no-color "[v]"..HEAD
git log -1 --format=%ad --date=short -- "[v]"
git commit -m "[v]" -- "[v]"
git tag -a "[v]" -m v
tar czf out.tgz "[v]"
mkdir -p "$(dirname "[v]")" && touch "[v]"
find "[v]" -name "*.py" | xargs wc -l
find "[v]" -name "*.py" -exec wc -l {} +
diff <(git show "[v]":a) a
sha256sum "[v]" | cut -d" " -f1
column -t "[v]"
ruff check "[v]" && mypy "[v]"
npx eslint "[v]"
pytest tests/[v]
docker build -t "img:[v]" .
gh pr create --title "[v]" --body "[v]"
curl -fsSL "[v]" -o out.json
curl -s -o /dev/null -w '%{http_code}' "[v]"
sed -i 's/a/b/' "[v]"
jq --arg title "[v]" '.title = $title' f.json
cat "[v]" | python3 -m json.tool
f="[v]"; for x in $f; do wc -l "$x"; done
export FOO="[v]" && ./run.sh
./scripts/report.sh --title="[v]"
env TITLE="[v]" ./scripts/report.sh
.github/scripts/check.sh "[v]"
timeout 60 bash scripts/check.sh "[v]"
poetry run python scripts/check.py "[v]"
""")

# A value that begins with a dash would be an option.
TAKEN_FOR_OPTION = _commands(r"""
./tool [v]
./tool '[v]'
./tool "[v]"
./tool ''[v]
./tool a [v] b
./tool [v]/x
./tool [w][v]
sudo -n ./tool [v]
x=[v]; ./tool $x
x=[v]; ./tool "$x"
a=([v]); ./tool "${a[@]}"
./tool $(printf %s [v])
echo [v] | xargs ./tool
for x in [v]; do ./tool $x; done
f() { ./tool "$1"; }; f [v]
printf %s [v] | while read x; do ./tool $x; done
sh -c './tool "$1"' sh [v]
./tool -x -y [v]
rm -rf [v]
git log [v]
printf [v]
cat `echo [v]`
""")

# A dash at the beginning of the value means nothing here.
NEVER_AN_OPTION = _commands(r"""
./tool -- [v]
./tool a -- b [v]
./tool --name=[v]
./tool -n[v]
./tool x[v]
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
X=[v] ./tool
x=[v]; ./tool -- $x
./tool --a="$(echo [v])"
echo [v] | xargs ./tool --
for x in [v]; do echo $x; done
: [v]
echo [v] | grep -q x
""")

# `./tool` may get the value, or a piece of it, as a word of its own.
WORDS_OF_TOOL = _commands(r"""
./tool {[v],b}
./tool {a,[v]}
./tool a{,[v]}
./tool [v]
./tool "[v]"
x=[v]; ./tool $x
x=[v]; ./tool "$x"
x=[v]; ./tool "${x#z}"
x=[v]; ./tool "${x:1}"
x=[v]; ./tool "${x:0}"
x=[v]; ./tool "${x//z/}"
x=[v]; ./tool "${x/_/-}"
x=[v]; ./tool "${x#*,}"
x=[v]; ./tool ${x%% *}
x=[v]; ./tool "${x,,}"
x=[v]; ./tool "${y:-$x}"
x=[v]; ./tool "${x:+$x}"
x=[v]; y=$x; ./tool "$y"
x=[v]; y="$x"; ./tool $y
x=z[v]; ./tool "${x#z}"
x=z[v]; y=${x#z}; ./tool "$y"
IFS=,; x=[v]; ./tool $x
IFS=z; for x in $(echo [v]); do ./tool "$x"; done
IFS=: read -r a b <<< [v]; ./tool "$b"
IFS=, read -ra a <<< [v]; ./tool "${a[@]}"
IFS=, read -ra a <<< [v]; for x in "${a[@]}"; do ./tool "$x"; done
read -a a <<< [v]; ./tool "${a[1]}"
read -r x y <<< [v]; ./tool "$y"
read -r x <<< [v]; ./tool "$x"
read x <<< [v]; ./tool "$x"
read -d, x <<< [v]; ./tool "$x"
read -n 3 x <<< [v]; ./tool "$x"
mapfile -t a <<< [v]; ./tool "${a[@]}"
mapfile -t a <<< [v]; ./tool "${a[1]}"
mapfile -d , -t a <<< [v]; ./tool "${a[@]}"
readarray -td, a <<< [v]; ./tool "${a[@]}"
echo [v] > l.txt; xargs ./tool < l.txt
echo [v] > l.txt; ./tool $(cat l.txt)
echo [v] > l.txt; ./tool $(<l.txt)
echo [v] > l.txt; while read x; do ./tool $x; done < l.txt
echo [v] > l.txt; while IFS= read -r x; do ./tool "$x"; done < l.txt
echo [v] > l.txt; xargs -a l.txt ./tool
echo [v] > l.txt; cat l.txt | xargs ./tool
echo [v] > l.txt; mapfile -t a < l.txt; ./tool "${a[@]}"
echo [v] > l.txt; x=$(head -1 l.txt); ./tool "$x"
echo [v] > l.txt; ./tool "$(tail -1 l.txt)"
echo [v] > l; xargs ./tool < l
echo [v] > l; ./tool $(cat l)
echo [v] | tee l.txt; ./tool $(cat l.txt)
echo [v] | xargs ./tool
echo [v] | xargs -n1 ./tool
echo [v] | xargs -I{} ./tool {}
echo [v] | xargs -I{} ./tool a {}
echo [v] | xargs -d, ./tool
echo [v] | xargs -0 ./tool
echo [v] | tr , '\n' | xargs ./tool
echo [v] | tr _ - | xargs ./tool
echo [v] | cut -d, -f2 | xargs ./tool
echo [v] | sed 's/_/-/' | xargs ./tool
./tool $(echo [v] | tr _ -)
./tool "$(echo [v] | cut -c2-)"
./tool "$(echo -e [v])"
./tool "$(printf %b [v])"
./tool "$(printf [v])"
./tool "$(printf '%s' [v])"
./tool "$(printf '%.9s' [v])"
./tool $(printf '%s\n' a [v])
./tool `echo [v]`
./tool `echo [v] | rev`
x=$(echo [v]); ./tool $x
x=$(echo [v] | tail -c 5); ./tool "$x"
for x in [v]; do ./tool "$x"; done
for x in $(echo [v]); do ./tool "$x"; done
for x in a [v]; do ./tool $x; done
a=([v]); ./tool "${a[@]}"
a=($(echo [v])); ./tool "${a[@]}"
x=[v]; a=($x); ./tool "${a[1]}"
x=[v]; a=($x); ./tool "${a[@]}"
x=[v]; set -- $x; ./tool "$@"
x=[v]; set -- $x; ./tool "$2"
x=[v]; set -- $x; shift; ./tool "$@"
set -- [v]; ./tool "$1"
set -- a [v]; ./tool "${@:2}"
f() { ./tool "$1"; }; f [v]
f() { ./tool "$@"; }; x=[v]; f $x
f() { ./tool "${1#z}"; }; f [v]
f() { ./tool "${@:2}"; }; x=[v]; f $x
f() { shift; ./tool "$1"; }; x=[v]; f a $x
f() { echo [v]; }; ./tool "$(f)"
f() { echo [v]; }; ./tool $(f)
f() { local x=$1; ./tool ${x#z}; }; f [v]
f() { read x; ./tool "$x"; }; f <<< [v]
f() { xargs ./tool; }; echo [v] | f
bash -c './tool "$1"' bash [v]
bash -c './tool $1' bash [v]
bash -c './tool "${1#z}"' bash [v]
bash -c './tool "$@"' bash [v]
bash -c 'read x; ./tool "$x"' <<< [v]
sh -c './tool $(echo "$1")' sh [v]
sh -c 'x=$(echo "$1"); ./tool "$x"' sh [v]
bash -c 'x=$(echo "$1"); ./tool "$x"' bash [v]
export X=[v]; bash -c './tool "$X"'
export X=[v]; bash -c './tool $X'
X=[v] bash -c './tool "${X#z}"'
env X=[v] bash -c './tool $X'
printf -v x %s [v]; ./tool "$x"
printf -v x %b [v]; ./tool "$x"
[[ [v] =~ z(.*) ]]; ./tool "${BASH_REMATCH[1]}"
[[ [v] =~ (-.*) ]] && ./tool "${BASH_REMATCH[0]}"
: [v]; ./tool "$_"
touch -- [v]; ./tool *
mkdir -- [v]; ./tool *
touch -- [v]; ./tool $(ls)
touch -- [v]; ls | xargs ./tool
touch -- [v]; for f in *; do ./tool "$f"; done
touch -- [v]; for f in *; do ./tool $f; done
touch -- [v]; a=(*); ./tool "${a[@]}"
touch -- [v]; ./tool ?PWN
touch -- [v]; ./tool [a-z-]*
cp x -- [v]; ./tool *
touch -- [v]; x=*; ./tool $x
touch -- [v]; git ls-files -o | xargs ./tool
touch -- [v]; find . -name '*PWN' -printf '%f\n' | xargs ./tool
touch -- [v]; find . -name '*PWN' -exec ./tool {} \;
touch -- [v]; cd .; ./tool `ls`
sudo -n ./tool [v]
timeout 5 ./tool [v]
nice ./tool [v]
env ./tool [v]
command ./tool [v]
exec ./tool [v]
time ./tool [v]
./tool x $(basename [v])
./tool $(basename -- z/[v])
./tool "$(dirname -- [v])"
./tool $(cat <<< [v])
./tool $(cat <<E⏎[v]⏎E⏎)
./tool "$(cat <(echo [v]))"
cat <<E | xargs tool⏎[v]⏎E
xargs ./tool <<< [v]
xargs ./tool <<E⏎[v]⏎E
xargs ./tool < <(echo [v])
printf '%s\n' [v] | while read -r x; do ./tool "$x"; done
printf '%s\n' [v] | while IFS=, read -r x y; do ./tool "$y"; done
echo [v] | { read x; ./tool "$x"; }
echo [v] | (read x; ./tool $x)
while read x; do ./tool "$x"; done <<< [v]
while read -r x; do ./tool $x; done < <(echo [v])
select x in [v]; do ./tool "$x"; break; done <<< 1
x=[v]; y=(${x//,/ }); ./tool "${y[@]}"
x=[v]; ./tool ${x//,/ }
x=[v]; ./tool "${x@L}"
x=[v]; ./tool ${x@Q}
x=[v]; x=${x:1}; ./tool "$x"
x=[v]; x="${x#?}"; ./tool "$x"
x=[v]; while [ "${x:0:1}" = z ]; do x=${x:1}; done; ./tool "$x"
x=''; x+=[v]; ./tool "$x"
x=[v]; ./tool ""$x
x=[v]; ./tool ''"$x"
x=[v]; ./tool $y$x
x=[v]; ./tool a$x
x=[v]; ./tool a/$x
x=[v]; ./tool --a=$x
x=[v]; declare y=$x; ./tool "$y"
x=[v]; local y=${x#z}; ./tool "$y"
x=[v]; readonly y=${x#z}; ./tool "$y"
declare -A m; m[k]=[v]; ./tool "${m[k]}"
declare -l x=[v]; ./tool "$x"
getopts z: x z[v]; ./tool "$OPTARG"
coproc cat; ./tool [v]
x=[v]; ./tool "${x: -4}"
x=[v]; ./tool ${x:0:4}
x=[v]; ./tool "$(echo "${x#z}")"
x=[v]; echo "${x#z}" | xargs ./tool
awk -v x=[v] 'BEGIN{print x}' | xargs ./tool
awk -v x=[v] 'BEGIN{print substr(x,2)}' | xargs ./tool
jq -rn --arg x [v] '$x' | xargs ./tool
python3 -c 'import sys; print(sys.argv[1][1:])' [v] | xargs ./tool
grep -o -- '-PWN' <<< [v] | xargs ./tool
./tool $(grep -o -e '-PWN' <<< [v])
sed 's/z//' <<< [v] | xargs ./tool
sort <<< [v] | xargs ./tool
env X=[v] printenv X | xargs ./tool
x=[v]; declare -p x | xargs ./tool
x=[v]; printf '%s' "$x" | xargs ./tool
x=[v]; ./tool <(echo "$x") $x
""")
