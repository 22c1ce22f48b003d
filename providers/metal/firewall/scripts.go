package firewall

// The scripts of commit-confirm. The state is a file on the machine in a folder that
// a reboot empties: pending-TOKEN is renamed to confirmed-TOKEN or to
// going-back-TOKEN, and the first rename wins. A completed rollback is
// rolled-back-TOKEN: an interrupted one is repeated.
//
// Loading holds a lock that the rollback waits for: otherwise rules that were
// still being loaded would follow it, and stay.

// rollbackFile is run by the timer, with the token. Over SSH it runs without the
// connection's output: when that is gone, the first message would end it.
const rollbackFile = `d=/run/stoke-firewall
if [ -z "${STOKE_LOCKED-}" ]; then exec 9>"$d/lock"; flock -w 600 9 || :; fi
mv "$d/pending-$1" "$d/going-back-$1" 2>/dev/null || [ -e "$d/going-back-$1" ] || exit 0
echo "stoke: new firewall rules were not confirmed, going back to the former ones" >&2
if [ -e "$d/was-$1.nft" ]; then
  # Whom even the former rules fail is better open than locked.
  nft -f "$d/was-$1.nft" || nft delete table inet stoke
fi
# ufw's files have the former rules all the while.
if [ -s "$d/new-$1.ufw" ]; then ufw reload >&2; fi
mv "$d/going-back-$1" "$d/rolled-back-$1"
`

// unconfirmedScript rolls back whatever is not confirmed, where $d is the folder.
const unconfirmedScript = `for p in "$d"/pending-* "$d"/going-back-*; do
  if [ -e "$p" ]; then
    sh "$d/rollback" "${p##*-}" >/dev/null 2>&1
    systemctl stop "stoke-firewall-rollback-${p##*-}.timer" >/dev/null 2>&1 || :
  fi
done
`

// ufwSeparator stands between what ufwScript reads; no comment has it in it.
const ufwSeparator = "\x1f"

// ufwScript changes ufw's rules as its input says. ufw writes each rule to disk,
// and nothing of that must be there before it is confirmed, even if the machine
// loses power: here $1 is what ufw takes for its folder.
const ufwScript = `
mount --bind "$1" /etc/ufw
IFS=$(printf "\037")
while read -r verb proto from ports comment; do
  set -- from "$from" to any
  if [ "$proto" != any ]; then set -- proto "$proto" "$@"; fi
  if [ -n "$ports" ]; then set -- "$@" port "$ports"; fi
  case $verb in
  add) ufw allow "$@" comment "stoke: $comment" </dev/null >/dev/null ;;
  delete) ufw delete allow "$@" </dev/null >/dev/null ;;
  esac
done`

// loadScript gets a token, the seconds until rollback, and the rules as its
// input: the table, a line "#ufw", what to do to ufw's rules, and a line "#end". It
// leaves the rules live, nothing of them on disk, and the timer running.
const loadScript = `# load firewall rules
set -e
umask 077
export LC_ALL=C
d=/run/stoke-firewall token=$1 had=
mkdir -p "$d"
exec 9>"$d/lock"
flock -w 60 9 || { echo "other firewall rules are being loaded" >&2; exit 1; }
export STOKE_LOCKED=yes
cat >"$d/rollback.new" <<'ROLLBACK'
` + rollbackFile + `ROLLBACK
mv -f "$d/rollback.new" "$d/rollback"
# What an earlier run left unconfirmed goes first, so that what comes back later
# are rules that somebody confirmed.
` + unconfirmedScript + `rm -rf "$d"/*-*
cat >"$d/in-$token"
if [ "$(tail -n 1 "$d/in-$token")" != "#end" ]; then echo "only a part of the rules arrived" >&2; exit 1; fi
sed '/^#ufw$/,$d' "$d/in-$token" >"$d/new-$token.nft"
sed -e '1,/^#ufw$/d' -e '$d' "$d/in-$token" >"$d/new-$token.ufw"
nft -c -f "$d/new-$token.nft"
{
  echo 'table inet stoke'
  echo 'delete table inet stoke'
  if nft list table inet stoke >/dev/null 2>&1; then nft -s list table inet stoke; fi
} >"$d/was-$token.nft"
if nft list table inet stoke >/dev/null 2>&1; then had=yes; fi
: >"$d/pending-$token"
systemd-run --quiet --collect --unit="stoke-firewall-rollback-$token" --on-active="$2" \
  --timer-property=AccuracySec=100ms /bin/sh "$d/rollback" "$token"
trap 'sh "$d/rollback" "$token" >/dev/null 2>&1; systemctl stop "stoke-firewall-rollback-$token.timer" >/dev/null 2>&1' EXIT
# Connections that stand are let in as established only once connection tracking
# has seen them; the kernel gets a moment to learn them. How many it knows says
# nothing: it tracks those of the moment in which nft checks rules.
if [ -z "$had" ]; then
  nft -f - <<'LEARN'
table inet stoke {
	chain learn {
		type filter hook input priority 0; policy accept;
		ct state established accept
	}
}
LEARN
  sleep 2
fi
nft -f "$d/new-$token.nft"
if [ -s "$d/new-$token.ufw" ]; then
  cp -a /etc/ufw "$d/ufw-$token"
  unshare -m sh -ec '` + ufwScript + `' sh "$d/ufw-$token" <"$d/new-$token.ufw"
  for f in user.rules user6.rules; do cp -p "$d/ufw-$token/$f" "$d/new-$token.$f"; done
fi
: >"$d/loaded-$token"
trap - EXIT`

// confirmScript gets a token and says "confirmed", "loading" while the rules are not
// all loaded, or "late" when the machine has gone back already. It may be run again.
const confirmScript = `# confirm firewall rules
set -e
d=/run/stoke-firewall
if [ ! -e "$d/confirmed-$1" ]; then
  if [ -e "$d/pending-$1" ] && [ ! -e "$d/loaded-$1" ]; then echo loading; exit 0; fi
  if ! mv "$d/pending-$1" "$d/confirmed-$1" 2>/dev/null; then echo late; exit 0; fi
fi
systemctl stop "stoke-firewall-rollback-$1.timer" 2>/dev/null || :
for f in user.rules user6.rules; do
  if [ -e "$d/new-$1.$f" ]; then
    cp -p "$d/new-$1.$f" "/etc/ufw/$f.stoke-new"
    sync "/etc/ufw/$f.stoke-new"
    mv -f "/etc/ufw/$f.stoke-new" "/etc/ufw/$f"
  fi
done
rm -rf "$d"/was-* "$d"/new-* "$d"/in-* "$d"/ufw-* "$d"/loaded-*
echo confirmed`

// persistScript gets the table as its input. It does without daemon-reload,
// which containers with GPUs may lose them by: the unit is read when it is
// started first, and at the next boot.
const persistScript = `# make firewall rules permanent
set -e
umask 022
mkdir -p /etc/stoke
cat >/etc/stoke/firewall.nft.stoke-new
chmod 0600 /etc/stoke/firewall.nft.stoke-new
sync /etc/stoke/firewall.nft.stoke-new
mv -f /etc/stoke/firewall.nft.stoke-new /etc/stoke/firewall.nft
systemctl --no-reload --quiet enable stoke-firewall.service 2>&1
systemctl start stoke-firewall.service`

// rollbackScript rolls back now, if nobody has confirmed, or waits for a rollback
// that is under way, and says how it ended. A unit of its own does it: where the connection
// breaks meanwhile, ufw would be left half loaded.
const rollbackScript = `# roll firewall rules back
d=/run/stoke-firewall
if [ -e "$d/rollback" ]; then
  systemd-run --quiet --collect --wait /bin/sh "$d/rollback" "$1" >/dev/null 2>&1 || sh "$d/rollback" "$1" 2>/dev/null
fi
if [ -e "$d/pending-$1" ] || [ -e "$d/going-back-$1" ]; then echo pending; exit 0; fi
systemctl stop "stoke-firewall-rollback-$1.timer" 2>/dev/null
if [ -e "$d/rolled-back-$1" ]; then echo rolled-back
elif [ -e "$d/confirmed-$1" ]; then echo confirmed
else echo nothing; fi`

// removeScript removes what would load our table again, and, unless $1 says keep, the
// table. Without its table a machine is more open than before, never less, so nobody
// has to confirm it.
const removeScript = `# remove the firewall table
d=/run/stoke-firewall
` + unconfirmedScript + `set -e
if [ -e /etc/systemd/system/stoke-firewall.service ]; then
  systemctl --no-reload --quiet disable stoke-firewall.service 2>&1
  systemctl stop stoke-firewall.service
fi
rm -rf "$d"
if [ "$1" != keep ] && command -v nft >/dev/null 2>&1 && nft list table inet stoke >/dev/null 2>&1; then
  nft delete table inet stoke
  echo removed
fi`

// unitScript has the unit, whose file was there before us, do what it did: $1 says
// whether it was enabled, $2 whether it was active.
const unitScript = `# give back the unit of the firewall
set -e
[ "$1" != true ] || systemctl --no-reload --quiet enable stoke-firewall.service 2>&1
[ "$2" != true ] || systemctl start stoke-firewall.service`

const tidyScript = `# remove empty folders
rmdir /etc/stoke 2>/dev/null || :`
