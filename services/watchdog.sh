# watchdog.sh DIR [FOLDER...]
#
# Waits until standard input ends. If a line came before that, the owner has cleaned up by itself and nothing is left to do.
# Otherwise the owner is gone: the service processes of DIR are ended, in good order if they can, and each FOLDER is removed.
#
# A process counts as a service of DIR while its standard error is one of DIR's log files: a pid alone may have gone to
# another process by now, and a title or an environment can be overwritten.
trap '' HUP INT QUIT TERM
read -r _ && exit 0
dir=$1
shift

# services LOGS prints the processes whose log files match.
services() {
    for stderr in /proc/[0-9]*/fd/2; do
        for log in "$dir"/$1; do
            # shellcheck disable=SC3013 # POSIX has it since 2024, every sh of Linux since long ago
            if [ "$stderr" -ef "$log" ]; then
                pid=${stderr#/proc/}
                echo "${pid%%/*}"
            fi
        done
    done
}

# end SIGNAL TENTHS LOGS signals each such service once, and waits that many tenths of a second until two looks in a row find none.
# Two, since a process that the owner was starting when it died shows up a moment later.
end() {
    told=' '
    none=0
    tenths=$2
    while [ "$none" -lt 2 ] && [ "$tenths" -gt 0 ]; do
        pids=$(services "$3")
        none=$((none + 1))
        for pid in $pids; do
            none=0
            case $told in *" $pid "*) continue ;; esac
            told="$told$pid "
            # A stopped process sees the signal only when it goes on.
            kill -s "$1" "$pid"
            kill -s CONT "$pid"
        done
        sleep 0.1
        tenths=$((tenths - 1))
    done
    [ "$none" -ge 2 ]
}

# A server that was just making its data folder has nothing to keep, and MariaDB doesn't heed a mere request meanwhile.
end KILL 100 '*.unfinished.log'
end TERM 300 '*.log' || end KILL 100 '*.log' || exit 1
[ $# -eq 0 ] || rm -rf -- "$@"
