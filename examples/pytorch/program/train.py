"""Trains a small network with PyTorch's DistributedDataParallel.

It runs unchanged under torchrun and under stoke, which give a program the same
environment. Under stoke it also writes checkpoints and reports metrics.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def clusters(records, seed):
    """Returns points around one center for each of 10 classes, and their classes."""
    random = torch.Generator().manual_seed(seed)
    centers = torch.randn(10, 32, generator=torch.Generator().manual_seed(1)) * 0.7
    labels = torch.randint(0, 10, (records,), generator=random)
    return centers[labels] + torch.randn(records, 32, generator=random), labels


def report(**values):
    """Reports metrics, or a complete checkpoint, to stoke. Under torchrun it prints them."""
    print("stoke:", json.dumps(values), flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=6)
    arguments.add_argument("--learning-rate", type=float, default=0.2)
    arguments.add_argument("--batch-size", type=int, default=32, help="records of each rank")
    arguments.add_argument("--seed", type=int, default=0)
    a = arguments.parse_args()

    gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if gpu else torch.device("cpu")
    torch.manual_seed(a.seed)
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=a.learning_rate, momentum=0.9)

    epoch = 0
    checkpoint = os.environ.get("STOKE_RESUME_FROM")
    if checkpoint:
        state = torch.load(checkpoint, map_location=device)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        epoch = state["epoch"]
    ddp = DistributedDataParallel(model, device_ids=[device.index] if gpu else None)

    inputs, labels = (t.to(device) for t in clusters(8192, seed=2))
    test_inputs, test_labels = (t.to(device) for t in clusters(2048, seed=3))
    steps = len(inputs) // (a.batch_size * world)
    while epoch < a.epochs:
        order = torch.randperm(len(inputs), generator=torch.Generator().manual_seed(a.seed + epoch))
        for step in range(steps):
            chosen = order[(step * world + rank) * a.batch_size :][: a.batch_size]
            loss = nn.functional.cross_entropy(ddp(inputs[chosen]), labels[chosen])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        epoch += 1
        loss = loss.detach()
        dist.all_reduce(loss)
        if rank == 0:
            with torch.no_grad():
                accuracy = (model(test_inputs).argmax(1) == test_labels).float().mean().item()
            report(step=epoch * steps, epoch=epoch, loss=loss.item() / world, accuracy=accuracy)
            save(model, optimizer, epoch)
    dist.destroy_process_group()


def save(model, optimizer, epoch):
    """Writes a checkpoint, and reports it once it is complete."""
    folder = os.environ.get("STOKE_CHECKPOINT_DIR")
    if not folder:
        return
    name = f"epoch-{epoch:04d}.pt"
    path = os.path.join(folder, name)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, path + ".new")
    os.replace(path + ".new", path)
    report(checkpoint=name)


if __name__ == "__main__":
    main()
