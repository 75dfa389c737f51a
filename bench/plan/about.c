/* What each command is, in words. The options stand in the tables. */
#include <stdio.h>

#include "bench/words/columns.h"
#include "bench/words/words.h"
#include "help.h"

#define PLACES "--local | --listen [[ADDR:]PORT] | --connect ADDR[:PORT]"
#define SETTINGS_ELSEWHERE                                                                                             \
    "A setting is also WEFT_<NAME> in the environment and NAME = VALUE in a file; 'weft config NAME' tells all of "    \
    "it. "                                                                                                             \
    "One that takes off|on also takes 0|1, no|yes and false|true, and is on if it stands alone. "                      \
    "Sizes take K, M, G, T: powers of 1024. "

static const struct bench_about commands[] = {
    {BENCH_MESH, "mesh", "full mesh between two nodes, or among many (--nodes, or a launcher)",
     "weft mesh " PLACES " [OPTION...]\n"
     "weft mesh --nodes N --local | --rank I --rendezvous MEETING [OPTION...]",
     "Measures every directed pair of endpoints between two nodes, sends what was measured again and verifies it, and "
     "prints the matrix. The node that connects decides what is measured; the other one adopts it.",
     "# both nodes on this machine\n"
     "weft mesh --local -e 16M --endpoints 2\n"
     "# two machines: the first waits, the second connects to it\n"
     "weft mesh --listen\n"
     "weft mesh --connect 192.0.2.7 --size 64K,1M --json mesh.json\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran, and what was verified was right; 1 a run or a check failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_PAIR, "pair", "one directed pair: bandwidth, or ping-pong with --lat", "weft pair " PLACES " [OPTION...]",
     "Measures one directed pair of endpoints: bandwidth, or half round-trip times with --lat.",
     "weft pair --local --size 1M\n"
     "# latency between two machines: the first waits, the second connects to it\n"
     "weft pair --listen\n"
     "weft pair --connect 192.0.2.7 --lat --size 8\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran, and what was verified was right; 1 a run or a check failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_PEERS, "peers", "the same pair on other tools, side by side, and the ratio",
     "weft peers [" PLACES "] [OPTION...]",
     "Measures one pair with Weft and with every other tool that is installed, in turns, and prints the ratios. "
     "Nothing is verified. Without --size: the half round trip of 8 bytes, the rate of messages of 64 bytes, and the "
     "bandwidth of 64K, 1M and 64M.",
     "weft peers --rounds 11 --json peers.json\n"
     "# between two machines, two tools: the first runs the servers\n"
     "weft peers --listen\n"
     "weft peers --connect 192.0.2.7 --tools weft,iperf3 --size 1M\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran; 1 something failed; 2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_SWEEP, "sweep", "one pair or mesh with many settings: which are the best",
     "weft sweep [" PLACES "] [OPTION...]",
     "Runs weft pair (or --measure mesh) with every combination of the settings that --vary names, each --rounds times "
     "in turns, and says which is best, and whether it beats the default by more than their noise. With --out, a sweep "
     "that was cut goes on where it was when the same command is given again. Files of --config may name what is "
     "varied: configs/sweeps has some.",
     "weft sweep --vary chunk=256K,512K,1M,2M --size 64M --out results/chunk\n"
     "# search a larger space, and keep what is found\n"
     "weft sweep --auto --vary chunk=64K..8Mx2 --vary window=4..512x2 --save w.conf\n"
     "# between two machines: the first runs its half of each run\n"
     "weft sweep --listen\n"
     "weft sweep --connect 192.0.2.7 --measure mesh --vary rails=1..4\n",
     SETTINGS_ELSEWHERE "Exit status: 0 the default and another point were measured; 1 they could not be, or the sweep "
                        "was cut short; 2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_PROFILE, "profile", "every pair and size, one message at a time, with all that may have disturbed it",
     "weft profile " PLACES " [OPTION...]",
     "Profiles point-to-point links for network simulators: every directed pair of endpoints and every size, one "
     "message "
     "at a time, in one shuffled order, repeated. Samples temperatures, clocks and counters meanwhile, compares the "
     "clocks of the nodes and of the GPUs, and writes execution_log.csv, temperatures.csv, a trace of each rank for "
     "Perfetto and PyTorch's tools, metadata, and model.json: latency and bandwidth of each pair, fitted. What may "
     "have "
     "disturbed a sample is marked, and none is dropped.",
     "weft profile --local --endpoints 4 -e 64M --drift-s 5\n"
     "# two machines: the first waits, and writes the files of both\n"
     "weft profile --listen --lock-clocks\n"
     "weft profile --connect 192.0.2.7 --scope all --backend weft,nccl --warm-to 50\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran, and what was verified was right; 1 a run or a check failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_COLLECTIVE, "collective", "collectives over ranks, on Weft and on others, in nccl-tests' columns",
     "weft collective [--processes N,... | --processes found] [OPTION...]",
     "Measures collective operations among processes: all-reduce and others, over Weft (libweft_coll), NCCL, Open MPI, "
     "MPICH and Gloo, in turns. Every element of the result is verified. Time and bandwidths are those of nccl-tests: "
     "algbw is bytes over time, the bytes being the larger of what a rank hands in and gets; busbw is algbw times "
     "2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and alltoall, 1 for broadcast and sendrecv. What "
     "a "
     "backend does not have is n/a, with the reason.",
     "weft collective -b 1K -e 64M -f 4 --processes 2,4\n"
     "# against others, each at its best\n"
     "weft collective --backend weft,mpi,gloo --best --rounds 5 --json all.json\n"
     "# ranks that a launcher starts\n"
     "srun --ntasks=4 weft collective --processes found --op all\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran, and what was verified was right; 1 a run or a check failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_OVERLAP, "overlap", "how much of the communication of gradients is hidden behind computation",
     "weft overlap [--processes N,... | --processes found] [OPTION...]",
     "Computes layers one after the other at every rank, and synchronises their gradients in buckets, as data-parallel "
     "training does: computation alone, communication alone, one after the other, and both at once. What is hidden of "
     "the communication follows from the wall clock. Every element of every sum is verified. Each backend of weft "
     "collective can communicate; what one does not have is n/a, with the reason.",
     "weft overlap --bucket-mb 1,5,25,100\n"
     "# against others, and against one rank that gathers and scatters\n"
     "weft overlap --backend weft,mpi,gloo --json overlap.json\n"
     "weft overlap --style all_reduce,server\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran, and what was verified was right; 1 a run or a check failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_STRAGGLER, "straggler", "barriers with a late rank: who, by how much, and how soon that is known",
     "weft straggler [--processes N | --processes found] [OPTION...]",
     "Barriers among ranks (libweft_coll), one of which is delayed on purpose before one barrier in 20. Each rank "
     "measures by its own clock how long it waits at a barrier; a rank that waited less than others, by --threshold-ms "
     "or more, was late by that much and is named. No clocks are compared. With --delay-ms 0 nobody is delayed, and a "
     "rank that is named is late by itself. The deadline of a barrier is --timeout: after it the group names who has "
     "not come, and ends.",
     "weft straggler\n"
     "# who is late in this cluster\n"
     "srun --ntasks=8 weft straggler --processes found --delay-ms 0\n"
     "# the deadline of a barrier names who does not come\n"
     "weft straggler --delayed-rank 2 --delay-ms 3000 --timeout 1\n",
     SETTINGS_ELSEWHERE "Exit status: 0 every rank that was delayed was named; 1 one was not, or a barrier failed; "
                        "2 wrong usage; 77 not available here.",
     NULL},
    {BENCH_SETUP_COST, "setup-cost", "a communicator made anew in every iteration, against one that is kept",
     "weft setup-cost [--processes N,...] [--backend LIST] [OPTION...]",
     "Has ranks do one all-reduce an iteration: with what it needs made for the first time (cold), kept, or made anew "
     "each time. On Weft that is the group, or the context with it, and the time is told step by step: names, "
     "connects, "
     "members. On MPI it is a communicator, on Gloo a context. What a backend does not have is n/a, with the reason.",
     "weft setup-cost\n"
     "weft setup-cost --backend weft,mpi,gloo --processes 2,4 --json cost.json\n",
     SETTINGS_ELSEWHERE "Exit status: 0 everything ran; 1 a run failed; 2 wrong usage; 77 not available here.", NULL},
    {BENCH_REPORT, "report", "one HTML page of results, with a verdict, charts and tables",
     "weft report FILE... [OPTION...]",
     "Makes one HTML page of result files: the verdict first, then every pair, bandwidth and time over size, rails, "
     "processor time, settings. The page needs no network. A FILE is the JSON of weft mesh, pair, peers, sweep, "
     "profile, collective (or its CSV), overlap, straggler or setup-cost, model.json or temperatures.csv of weft "
     "profile, a drawing of weft topo --svg, or a folder with such files. One that cannot be read is named, and does "
     "not stop the others.",
     "weft report results/latest\n"
     "# beside an earlier run; pictures for a paper\n"
     "weft report after.json --baseline before.json --html after.html\n"
     "weft report mesh.json --plots figures\n",
     "Exit status: 0 written; 1 a file could not be read, or nothing could be written; 2 wrong usage.", "FILE"},
    {BENCH_TOPO, "topo", "what is here, the plan of rails and cores, and why no faster path is in use",
     "weft topo [OPTION...]",
     "Prints what this machine is made of, which rails and processors serve which endpoint, and for each rail what is "
     "in the way of a faster path. Nothing is sent.",
     "weft topo\n"
     "# the plan for another machine: four processors on each of two NUMA nodes\n"
     "weft topo --xml 'synthetic:numa:2 core:4 pu:1' --json -\n",
     SETTINGS_ELSEWHERE "Exit status: 0 printed; 1 failed; 2 wrong usage; 77 not available here.", NULL},
    {BENCH_DOCTOR, "doctor", "what is wrong with this machine, and with the path to another one",
     "weft doctor [OPTION...]\n"
     "weft doctor --listen [[ADDR:]PORT] [OPTION...]\n"
     "weft doctor ADDR[:PORT] [OPTION...]",
     "Checks this machine: limits, processors, disk, interfaces, the port. With an address also the other machine, "
     "where "
     "weft doctor --listen waits, and each pair of rails both ways: key, version, clocks, firewalls, routes, packets "
     "that get lost for their size. Each fault is one line that ends with its remedy. Nothing is changed.",
     "weft doctor\n"
     "# two machines: the first waits, the second examines both and their rails\n"
     "weft doctor --listen\n"
     "weft doctor 192.0.2.7\n",
     "Exit status: 0 no fault; 1 at least one; 2 wrong usage; 77 not available here.", "ADDR"},
    {BENCH_NIC, "nic", "makes network cards ready for device-memory TCP, and puts back what was there",
     "weft nic prepare RAIL... [--queues N] [--dry-run]\n"
     "weft nic status [RAIL...] [--queues N]\n"
     "weft nic restore [RAIL...] [--dry-run]\n"
     "weft nic serve [RAIL...] --allow USER,...",
     "prepare switches on what device-memory TCP needs of a card (header split, rules for flows) and keeps other "
     "traffic off its last queues. Each change is printed before it is made, and what was there before is kept in "
     "/run/weft; restore puts it back, of all cards if none is named. status says what is in the way, of all cards if "
     "none is named. serve lends the queues that are set aside, and rules that lead streams to them, to processes of "
     "the users that are allowed, until it is ended. RAIL is the name of an interface. The setting devmem says "
     "whether messages use the queues.",
     "weft nic status\n"
     "weft nic prepare eth1 eth2 --dry-run\n"
     "weft nic prepare eth1 eth2\n"
     "weft nic serve eth1 eth2 --allow ann,1001\n"
     "weft nic restore\n",
     "Exit status: 0 done, for one card at least; 1 failed; 2 wrong usage; 77 not available here, for no card.",
     "prepare|status|restore|serve"},
    {BENCH_CONFIG, "config", "every setting: value, origin, default, meaning", "weft config [NAME...] [OPTION...]",
     "Prints every setting with its value, where that comes from, its default and its meaning; or all there is to say "
     "of the settings that are named. A NAME is as in a file (chunk), as an option (--chunk), as a variable "
     "(WEFT_CHUNK), or that of another system (NCCL_SOCKET_IFNAME).",
     "weft config chunk NCCL_SOCKET_IFNAME\n"
     "# what would be in force with this file and this option\n"
     "weft config --config weft.conf --chunk 1M\n",
     SETTINGS_ELSEWHERE "Exit status: 0 printed; 1 failed; 2 wrong usage.", "NAME"},
    {BENCH_KEY, "key", "makes a key file: with it, only those who hold the same key can connect", "weft key >FILE",
     "Prints a key file: a fresh key of 256 bits, as 64 hexadecimal digits. Whoever holds it may connect to whoever "
     "has it set. FILE must be readable by its owner alone, and the same on every node.",
     "(umask 077; weft key >weft.key)\n"
     "weft mesh --listen --key-file weft.key\n"
     "weft mesh --connect 192.0.2.7 --key-file weft.key\n",
     "Exit status: 0 printed; 1 failed, or the file could be read by others; 2 wrong usage.", NULL},
    {BENCH_RAW, "raw", "the floor: what plain TCP sockets give, without Weft",
     "weft raw --listen [[ADDR:]PORT] | --connect ADDR[:PORT][,...] [OPTION...]",
     "Measures plain TCP sockets, with one thread at each side: the least that any tool must cost. The client decides "
     "what is measured, and prints one JSON object (schema weft.raw/1); the server takes --listen, --timeout, "
     "--congestion and --cpu alone.",
     "# two machines: the first waits, the second connects to it\n"
     "weft raw --listen\n"
     "weft raw --connect 192.0.2.7 --size 1M\n",
     "Sizes take K, M, G, T: powers of 1024. Exit status: 0 measured; 1 failed; 2 wrong usage.", NULL},
    {BENCH_COMPLETION, "completion", "prints what makes the TAB key of a shell complete weft's options",
     "weft completion bash|zsh",
     "Prints a script for the shell. An installed weft has it in the place where the shell looks.",
     "# in this shell, which is bash\n"
     "source <(weft completion bash)\n"
     "# zsh, for good, where ~/.zfunc is in $fpath\n"
     "weft completion zsh >~/.zfunc/_weft\n",
     "Exit status: 0 printed; 1 failed; 2 wrong usage.", "bash|zsh"},
    {0},
};

const struct bench_about *bench_commands(void)
{
    return commands;
}

const struct bench_about *bench_about(enum bench_command command)
{
    const struct bench_about *about = commands;

    while (about->name && about->command != command)
        about++;
    return about;
}

const char *bench_command_name(enum bench_command command)
{
    return bench_about(command)->name;
}

void bench_usage(FILE *out)
{
    fprintf(out, "usage: weft COMMAND [OPTION...]\n\n");
    for (const struct bench_about *about = commands; about->name; about++) {
        int column = fprintf(out, "  %-11s ", about->name);
        bench_put_wrapped(out, about->brief, &column, column, BENCH_HELP_WIDTH);
        fputc('\n', out);
    }
    fprintf(out, "\n'weft help COMMAND' or 'weft COMMAND --help' lists the options; 'weft --version'\n"
                 "or 'weft -V' prints the version.\n");
}
