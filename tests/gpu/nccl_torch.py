"""Two ranks of torch.distributed on one GPU, as two hosts, over the network of NCCL that the environment chooses.

    nccl_torch.py [MAX_BYTES [ROUNDS]]

For each operation and size a line of what nccl_ranks.c prints, too:

    OPERATION BYTES MICROSECONDS GB_PER_S WRONG

the median time of one operation at rank 0, bytes over that time, and wrong values of both ranks in all rounds. Every
round has other values, and what came is compared after its time was taken.

Exit status: 0 all values are right, 1 some are not, 77 there is no PyTorch with CUDA.
"""

import multiprocessing
import os
import statistics
import sys
import tempfile
import time

WARM_UP = 2
PERIOD = 251  # of the values: sums of two are exact in float32


def all_reduce(dist, rank, mine, _came):
    dist.all_reduce(mine)
    return mine


def sendrecv(dist, rank, mine, came):
    ops = [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, came, 1 - rank)]
    for request in dist.batch_isend_irecv(ops):
        request.wait()
    return came


def measure(torch, dist, device, operation, count, rank, rounds):
    """Seconds of each round, and wrong values of this rank."""
    base = torch.arange(count, device=device, dtype=torch.float32)
    seconds, wrong = [], 0
    for i in range(-WARM_UP, rounds):
        both = [(base + i + WARM_UP + which) % PERIOD for which in range(2)]
        expected = both[0] + both[1] if operation is all_reduce else both[1 - rank]
        mine, came = both[rank].clone(), torch.full_like(base, -1)
        dist.barrier()
        wait(torch, device)
        start = time.perf_counter()
        result = operation(dist, rank, mine, came)
        wait(torch, device)
        if i >= 0:
            seconds.append(time.perf_counter() - start)
        wrong += int((result != expected).sum())
    return seconds, wrong


def wait(torch, device):
    if device == "cuda":
        torch.cuda.synchronize()


def run(rank, meeting, most, rounds, backend, device):
    os.environ["NCCL_HOSTID"] = f"host{rank}"
    import torch
    import torch.distributed as dist

    if device == "cuda":
        torch.cuda.set_device(0)
    dist.init_process_group(backend, store=dist.FileStore(meeting, 2), rank=rank, world_size=2)
    total = 0
    for operation in (all_reduce, sendrecv):
        size = 8
        while size <= most:
            seconds, wrong = measure(torch, dist, device, operation, size // 4, rank, rounds)
            all_wrong = torch.tensor([wrong], device=device, dtype=torch.int64)
            dist.all_reduce(all_wrong)
            total += int(all_wrong)
            if rank == 0:
                median = statistics.median(seconds)
                print(operation.__name__, size, f"{median * 1e6:.1f} {size / median / 1e9:.4f}", int(all_wrong), flush=True)
            size *= 4 if size < 128 << 20 else 2
    dist.destroy_process_group()
    if rank == 0:
        network = torch.cuda.nccl.version() if backend == "nccl" else backend
        print(f"# PyTorch {torch.__version__}, NCCL {network}: {total} wrong values")
    sys.exit(1 if total else 0)


def main():
    # "gloo cpu" shows that the script itself is right, where there is no GPU.
    backend, device = os.environ.get("NCCL_TORCH_INSTEAD", "nccl cuda").split()
    try:
        import torch
    except ImportError:
        print("there is no PyTorch")
        return 77
    if device == "cuda" and (not torch.version.cuda or not torch.cuda.device_count()):
        print("PyTorch finds no GPU")
        return 77
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 256 << 20
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "store")
        ranks = [spawn.Process(target=run, args=(rank, meeting, most, rounds, backend, device)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
