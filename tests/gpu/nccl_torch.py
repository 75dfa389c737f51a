"""Two ranks of torch.distributed on one GPU, as two hosts, over the network of NCCL that the environment chooses.

    nccl_torch.py [MAX_BYTES]

Exit status: 0 all values are right, 1 some are not, 77 there is no PyTorch with CUDA.
"""

import multiprocessing
import os
import sys
import tempfile


def run(rank, meeting, most):
    os.environ["NCCL_HOSTID"] = f"host{rank}"
    import torch
    import torch.distributed as dist

    torch.cuda.set_device(0)
    store = dist.FileStore(meeting, 2)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=2)
    wrong = 0
    count = 2
    while count * 4 <= most:
        values = torch.arange(count, device="cuda", dtype=torch.float32) % 251
        mine = values + rank
        dist.all_reduce(mine)
        wrong += int((mine != 2 * values + 1).sum())
        came = torch.full_like(values, -1)
        ops = [dist.P2POp(dist.isend, values + rank, 1 - rank), dist.P2POp(dist.irecv, came, 1 - rank)]
        for request in dist.batch_isend_irecv(ops):
            request.wait()
        wrong += int((came != values + 1 - rank).sum())
        count *= 8
    torch.cuda.synchronize()
    dist.destroy_process_group()
    if rank == 0:
        print(f"PyTorch {torch.__version__}, NCCL {torch.cuda.nccl.version()}: {wrong} wrong values")
    sys.exit(1 if wrong else 0)


def main():
    try:
        import torch
    except ImportError:
        print("there is no PyTorch")
        return 77
    if not torch.version.cuda or not torch.cuda.device_count():
        print("PyTorch finds no GPU")
        return 77
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 16 << 20
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        meeting = os.path.join(folder, "store")
        ranks = [spawn.Process(target=run, args=(rank, meeting, most)) for rank in range(2)]
        for rank in ranks:
            rank.start()
        for rank in ranks:
            rank.join()
    return max(abs(rank.exitcode) for rank in ranks)


if __name__ == "__main__":
    sys.exit(main())
