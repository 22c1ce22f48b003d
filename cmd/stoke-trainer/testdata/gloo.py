# One member of an all-reduce by torch.distributed with Gloo, and of the update that
# stoke's members make with the sums: the norm, and a step of SGD. RANK, WORLD_SIZE,
# MASTER_ADDR and MASTER_PORT name the members; rank 0 prints a line of JSON for
# each length. Arguments: seconds for each length, then the lengths.
import json
import sys
import time

import torch
import torch.distributed as dist

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank, size, seconds = dist.get_rank(), dist.get_world_size(), float(sys.argv[1])
for floats in map(int, sys.argv[2:]):
    vector, values, more, took, whole = torch.empty(floats), torch.zeros(floats), torch.ones(1), [], []
    end = time.perf_counter() + seconds
    while more.item() > 0:
        vector.fill_(rank + 1)
        begin = time.perf_counter()
        dist.all_reduce(vector)
        took.append(time.perf_counter() - begin)
        scale = 1 / size if torch.linalg.vector_norm(vector).isfinite() else 0
        values.sub_(vector, alpha=scale)
        whole.append(time.perf_counter() - begin)
        want = size * (size + 1) / 2
        if vector[0].item() != want or vector[-1].item() != want:
            sys.exit(f"the sums are {vector[0].item()} and {vector[-1].item()}: want {want}")
        more[0] = len(took) < 8 or time.perf_counter() < end
        dist.broadcast(more, 0)
    took, whole = sorted(took[3:]), sorted(whole[3:])
    if rank == 0:
        print(json.dumps({"floats": floats, "seconds": took[len(took) // 2], "update": whole[len(whole) // 2]}), flush=True)
dist.barrier()
