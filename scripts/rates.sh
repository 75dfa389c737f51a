# shellcheck shell=bash
# rates.sh: the rates of the lab's and the cluster's rails; both source it, after say and wrong_usage are there.

frame=9000 # MTU: of the rate, (frame - 52) / (frame + 14) is TCP payload over IPv4: 99.3 %

parse_rate() {
    [[ $1 =~ ^[0-9]+(\.[0-9]+)?[kmg]bit$ && $1 =~ [1-9] ]] ||
        wrong_usage "'$1' is not a rate: write 500mbit or 1gbit, several with commas between them"
}

# bucket VERB RATE: sets burst and limit of a token bucket, in bytes. It is 2 ms deep, so that a timer that fires late
# costs nothing, and two frames at least. A larger one before may have let packets of 64 KiB into the queue, in the form
# that the kernel cuts only later: a bucket smaller than they are would never let them out, so with VERB `change` it is
# not. The queue behind it is longer than TCP lets it become: what is dropped here would be a fault of the lab, not of
# the rail.
# shellcheck disable=SC2034  # used by the scripts
bucket() {
    read -r burst limit < <(LC_ALL=C awk -v rate="$2" -v frame="$frame" -v verb="$1" 'BEGIN {
        bytes = rate * (rate ~ /g/ ? 1e9 : rate ~ /m/ ? 1e6 : rate ~ /k/ ? 1e3 : 1) / 8
        burst = bytes * 0.002; if (burst < 2 * (frame + 14)) burst = 2 * (frame + 14)
        if (verb == "change" && burst < 66000) burst = 66000
        limit = bytes * 0.05; if (limit < 1e6) limit = 1e6
        printf "%d %d\n", burst, limit }')
}
