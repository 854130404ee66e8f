# Deep: what tools/test --deep does once everything is installed. Sourced by tools/test; not run by itself.
#
# One build serves the sanitizers and the fuzzers: the fuzzers' coverage counters cost the tests little, a second build
# would cost minutes. Assertions are on.

fuzz_seconds=${FUZZ_SECONDS:-60}
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1:${ASAN_OPTIONS:-}
export UBSAN_OPTIONS=print_stacktrace=1:${UBSAN_OPTIONS:-}

sources() { git ls-files '*.h' '*.cpp'; }

check_format() {
  sources | xargs -r clang-format-19 --dry-run -Werror
}

# The commit that the changes of this one are measured against: where this branch left the main one, or else the one before.
base_commit() {
  local head base
  head=$(git rev-parse HEAD) || return 1
  for branch in origin/main origin/master; do
    base=$(git merge-base HEAD "$branch" 2>/dev/null) || continue
    if [ "$base" != "$head" ]; then
      echo "$base"
      return
    fi
  done
  git rev-parse --verify -q HEAD~1
}

# clang-tidy on what changed; on everything where there is no earlier commit.
check_tidy() {
  local base files
  if base=$(base_commit); then
    files=$(git diff --name-only --diff-filter=d "$base" -- 'lib/*.cpp' 'tools/*.cpp')
  else
    files=$(git ls-files 'lib/*.cpp' 'tools/*.cpp')
  fi
  if [ -z "$files" ]; then
    echo "no source changed"
    return 0
  fi
  printf '%s\n' $files | xargs -P "$jobs" -n 1 clang-tidy-19 -p build-asan --quiet --warnings-as-errors='*'
}

# run_fuzzer NAME: starts from the corpus; what it finds stays in the build folder, what crashes it is left there and named.
run_fuzzer() {
  local name="$1" found="build-asan/fuzz/$1" dictionary="test/fuzz/$1.dict"
  mkdir -p "$found"
  local options="-max_total_time=$fuzz_seconds -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 -verbosity=0"
  if [ -f "$dictionary" ]; then
    options="$options -dict=$dictionary"
  fi
  "build-asan/bin/fuzz_$name" $options -artifact_prefix="$found.crash-" "$found" "test/fuzz/corpus/$name" >"$found.log" 2>&1 || {
    tail -60 "$found.log"
    return 1
  }
  grep -E 'number_of_executed_units|peak_rss' "$found.log"
}

step "format" check_format
if ! configure build-asan -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_BUILD_TYPE=Debug \
  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g" -DSHARDC_SANITIZE=address,undefined -DSHARDC_FUZZ=ON; then
  failed=$((failed + 1))
elif step "build with sanitizers" build build-asan; then
  suite build-asan
  step "clang-tidy on changed files" check_tidy
  for target in test/fuzz/*.cpp; do
    name=$(basename "$target" .cpp)
    step "fuzz $name for $fuzz_seconds s" run_fuzzer "$name"
  done
fi
