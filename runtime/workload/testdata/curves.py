"""Trains a model of the zoo with PyTorch in float32, and prints the loss of each update.

Usage: python3 curves.py MODEL VECTOR RECORDS LABELS UPDATES RATE THREADS

VECTOR holds the initial values in stoke's layout, RECORDS bytes of pictures and LABELS
int32, one after the other in the order of training. An update has 64 records.
"""

import array
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../engine/cpu/testdata"))
import pytorch
import torch

BATCH = 64


def read(name, kind):
    values = array.array(kind)
    with open(name, "rb") as f:
        values.frombytes(f.read())
    return torch.tensor(values)


def main(model, vector, records, labels, updates, rate, threads):
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(int(threads))
    network = pytorch.models[model]()
    values, at = read(vector, "f"), 0
    with torch.no_grad():
        for part in network.parts:
            size = part.tensor.numel()
            part.tensor.copy_(part.from_stoke(values[at:at + size]))
            at += size
    h, w, c = network.shape
    with open(records, "rb") as f:
        pictures = torch.frombuffer(bytearray(f.read()), dtype=torch.uint8).reshape(-1, BATCH, h, w, c)
    classes = read(labels, "i").long().reshape(-1, BATCH)
    optimizer = torch.optim.SGD(network.parameters(), lr=float(rate))
    losses = []
    for x, y in zip(pictures[:int(updates)], classes):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network((x.float() * (1 / 255)).permute(0, 3, 1, 2)), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    json.dump(losses, sys.stdout)


main(*sys.argv[1:])
