# The virtual environments that the scripts run in. Sourced, never run by itself.
#
#   environment serve|test|peers|peer-NAME|lock    makes the environment when it is missing or out of date, and sets
#                                  $python to its interpreter; costs a few milliseconds when it is current
#
# Each environment holds what requirements/NAME.txt pins, by hash, and this checkout as an editable install
# (but for lock: pinning must work while the checkout is in pieces; and for each peer-NAME: it is not Rota).

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)

say() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
}

fail() {
  say "$*"
  exit 1
}

# Runs a command without a word, unless it fails: then shows all it had to say.
quietly() {
  local output
  output=$("$@" 2>&1) || {
    printf '%s\n' "$output" >&2
    return 1
  }
}

# Asks by running it: a shim on PATH may stand for a Python that is not there.
is_new_enough() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

# Debian keeps ensurepip in a package of its own (python3-venv).
can_make_environments() {
  "$1" -c 'import venv; from ensurepip import version' 2>/dev/null
}

# Prints the first Python that will do; fails when there is none.
search_python() {
  local name
  for name in python3.13 python3.12 python3.11 python3 /usr/bin/python3; do
    if is_new_enough "$name" && can_make_environments "$name"; then
      printf '%s' "$name"
      return
    fi
  done
  return 1
}

find_python() {
  search_python && return
  if [ "$EUID" = 0 ] && command -v apt-get >/dev/null; then
    say 'installing python3-venv'
    quietly env DEBIAN_FRONTEND=noninteractive sh -c \
      'apt-get -qq update && apt-get -qq install -y --no-install-recommends python3 python3-venv' || true
    search_python && return
  fi
  fail 'needs Python 3.11 or newer that can make virtual environments; as root: apt-get install python3 python3-venv'
}

# A stamp says what an environment was made from. The path is part of it: an environment cannot be moved.
stamp_of() {
  { printf '%s\n' "$root"; cat "$@"; } | sha256sum
}

is_stamped() {
  [ -x "$python" ] && [ "$(cat "$1" 2>/dev/null)" = "$2" ]
}

environment() {
  local name=$1 venv requirements packages project
  venv=$root/.venv-$name
  [ "$name" != test ] || venv=$root/.venv
  requirements=$root/requirements/$name.txt
  python=$venv/bin/python
  packages=$(stamp_of "$requirements")
  project=$(stamp_of "$root/pyproject.toml")
  ! is_alone "$name" || project=alone
  is_stamped "$venv/packages.stamp" "$packages" && is_stamped "$venv/project.stamp" "$project" && return

  [ -w "$root" ] || fail "cannot write to $root, where $(basename "$venv") belongs"
  # One at a time; whoever waited finds the work done. The stamps come last, so what was interrupted is made anew.
  exec 8<"$root/requirements"
  flock 8
  is_stamped "$venv/packages.stamp" "$packages" || install_packages
  is_stamped "$venv/project.stamp" "$project" || install_project
  exec 8<&-
}

install_packages() {
  local base
  base=$(find_python)
  say "making $(basename "$venv") from requirements/$name.txt"
  rm -rf "$venv"
  quietly "$base" -m venv "$venv" || fail "$base could not make $(basename "$venv")"
  run_pip --no-deps --require-hashes -r "$requirements"
  printf '%s\n' "$packages" >"$venv/packages.stamp"
}

# Whether an environment goes without this checkout.
is_alone() {
  [[ $1 = lock || $1 = peer-* ]]
}

install_project() {
  is_alone "$name" || run_pip --no-deps --no-build-isolation --editable "$root"
  printf '%s\n' "$project" >"$venv/project.stamp"
}

run_pip() {
  quietly "$python" -m pip install --disable-pip-version-check --no-input "$@" ||
    fail "pip could not fill $(basename "$venv"): see above; the next run tries again"
}
