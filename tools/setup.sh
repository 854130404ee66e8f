# Setup: makes sure that what shardc is built and tested with is installed. Sourced by tools/try and tools/test.
#
# On the systems in `supported` a missing package is installed with apt-get, through sudo where one is not root. On any
# other system nothing is installed: what is needed is listed, and the build goes on if the commands are there.
# This is not a package manager: versions and sources are those of the system.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 2

supported="debian:12 debian:13 ubuntu:24.04"

# Build and tests.
packages_build="g++ cmake ninja-build ccache python3 llvm-19-dev llvm-19-tools libzstd-dev zlib1g-dev
  nlohmann-json3-dev libcli11-dev libtomlplusplus-dev catch2"
# What tools/test --deep needs besides.
packages_deep="git clang-19 libclang-rt-19-dev clang-format-19 clang-tidy-19"

say() { printf '%s\n' "$*" >&2; }

# need_commands COMMAND...: fails, naming each, if one is not there.
need_commands() {
  local missing=""
  for command in "$@"; do
    command -v "$command" >/dev/null || missing="$missing $command"
  done
  if [ -n "$missing" ]; then
    say "missing commands:$missing"
    return 1
  fi
}

list_needs() {
  say "shardc is built with a C++20 compiler, CMake 3.25, ninja, Python 3, LLVM 19.1 (libraries, headers, FileCheck, lit),"
  say "nlohmann/json, CLI11, toml++ and Catch2. The deep tests also take clang 19 with its sanitizers and"
  say "libFuzzer, clang-format 19, clang-tidy 19 and git. The packages of Debian and Ubuntu with these are:"
  say "  $(echo $packages_build $packages_deep)"
}

# setup [deep]: installs what is missing.
setup() {
  local packages="$packages_build" commands="cmake ninja python3"
  if [ "${1:-}" = deep ]; then
    packages="$packages $packages_deep"
    commands="$commands git clang++-19 clang-format-19 clang-tidy-19"
  fi
  local system="unknown"
  if [ -r /etc/os-release ]; then
    system=$(. /etc/os-release && echo "${ID:-unknown}${VERSION_ID:+:$VERSION_ID}")
  fi
  case " $supported " in
  *" $system "*) ;;
  *)
    say "note: $system is not one of the systems that this script can install packages on ($supported)."
    list_needs
    need_commands $commands || exit 2
    return 0
    ;;
  esac

  local missing=""
  for package in $packages; do
    case "$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null)" in
    *"ok installed"*) ;;
    *) missing="$missing $package" ;;
    esac
  done
  if [ -z "$missing" ]; then
    return 0
  fi
  local sudo=""
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      say "missing packages, and neither root nor sudo to install them:$missing"
      exit 2
    fi
    sudo="sudo"
  fi
  say "installing:$missing"
  export DEBIAN_FRONTEND=noninteractive
  if ! { $sudo apt-get update -q </dev/null >&2 && $sudo apt-get install -y -q --no-install-recommends $missing </dev/null >&2; }; then
    say "these packages could not be installed:$missing"
    exit 2
  fi
}

# configure FOLDER [OPTION...]: CMake with ninja, quiet unless it fails.
configure() {
  local folder="$1" werror=OFF
  shift
  if [ -n "${CI:-}" ]; then
    werror=ON
  fi
  mkdir -p "$folder"
  if ! cmake -S . -B "$folder" -G Ninja -DSHARDC_WERROR=$werror "$@" >"$folder/configure.log" 2>&1; then
    cat "$folder/configure.log" >&2
    list_needs
    return 1
  fi
}
