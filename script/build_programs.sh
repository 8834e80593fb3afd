# For build_release and build_demo: builds targets of a preset, quiet unless something goes wrong.
# usage: build_programs PRESET TARGET...
build_programs() {
  local preset=$1
  shift
  mkdir -p build/logs
  local log=build/logs/$preset-build.log
  [ -x "build/$preset/bin/vpfs-proxy" ] ||
    echo "building vpfs (a few minutes the first time; output in $log)"
  if ! { cmake --preset "$preset" && cmake --build "build/$preset" --target "$@" -j "$(nproc)"; } >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    echo "the build failed; complete output: $log" >&2
    return 1
  fi
}

# Answers --help with the second line of a script that takes no arguments, and refuses others.
take_no_arguments() {
  local script=$1
  case "${2:-}" in
    "") ;;
    -h | --help)
      echo "usage: script/$(basename "$script")"
      sed -n '2s/^# //p' "$script"
      exit 0
      ;;
    *)
      echo "$(basename "$script"): unknown argument: $2 (it takes none)" >&2
      exit 2
      ;;
  esac
}
