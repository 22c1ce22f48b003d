"""Trains a model by PyTorch in float64, and writes its parameters.

Usage: python3 float64.py FOLDER

The folder has model.json, start.f32 (the parameters), features and answers of all updates.
The result is values.f64. A GPU computes where PyTorch has one.
"""

import json
import math
import sys

import torch
from torch.nn import functional as F

folder = sys.argv[1]
device = "cuda" if torch.cuda.is_available() else "cpu"
with open(folder + "/model.json") as f:
    job = json.load(f)


def read(name, dtype):
    with open(folder + "/" + name, "rb") as f:
        return torch.frombuffer(bytearray(f.read()), dtype=dtype).to(device)


types = {"u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "f32": torch.float32}
start = read("start.f32", torch.float32).to(torch.float64)
values, momenta, trained = {}, {}, []
for v in job["variables"]:
    value = start[v["offset"]:v["offset"] + v["length"]].reshape(v["shape"]).clone()
    if not v["momentum"]:
        value.requires_grad_(True)
        trained.append(value)
    values[v["name"]], momenta[v["name"]] = value, v["momentum"]


def same(n, kernel, stride):
    """Returns the zeros before and behind n elements, as TensorFlow places them."""
    total = max((-(-n // stride) - 1) * stride + kernel - n, 0)
    return total // 2, total - total // 2


def convolve(l, x):
    kernel, stride, pad = l["kernel"], l.get("stride", 1), l.get("pad", 0)
    x = x.permute(0, 3, 1, 2)
    if l.get("padding") == "same":
        x = F.pad(x, same(x.shape[3], kernel, stride) + same(x.shape[2], kernel, stride))
    weight = values[l["name"] + "/weight"].permute(3, 2, 0, 1)
    bias = values.get(l["name"] + "/bias")
    return F.conv2d(x, weight, bias, stride, pad, groups=l.get("groups", 1)).permute(0, 2, 3, 1)


def pool(l, x, function):
    kernel, stride = l["kernel"], l.get("stride", l["kernel"])
    if l.get("padding", "valid") != "valid":
        sys.exit("layer %s: a pool without padding is computed only" % l["name"])
    return function(x.permute(0, 3, 1, 2), kernel, stride).permute(0, 2, 3, 1)


def normalise(l, x):
    """Normalises channels over the batch, and notes the biased moments for the running ones."""
    name, over = l["name"], tuple(range(x.dim() - 1))
    mean, variance = x.mean(over), x.var(over, unbiased=False)
    with torch.no_grad():
        for moment, of in (("/mean", mean), ("/variance", variance)):
            running, keep = values[name + moment], momenta[name + moment]
            running.copy_(keep * running + (1 - keep) * of)
    y = (x - mean) / torch.sqrt(variance + l["epsilon"])
    return y * values[name + "/gamma"] + values[name + "/beta"]


def attend(l, q, k, v):
    records, positions, width = q.shape
    split = lambda x: x.reshape(records, positions, l["heads"], -1).transpose(1, 2)
    weights = split(q) @ split(k).transpose(2, 3) / math.sqrt(width / l["heads"])
    if l.get("causal"):
        later = torch.ones(positions, positions, dtype=torch.bool, device=device).triu(1)
        weights = weights.masked_fill(later, -math.inf)
    return (weights.softmax(3) @ split(v)).transpose(1, 2).reshape(records, positions, width)


def layer(l, inputs):
    x, op, name = inputs[0], l["op"], l["name"]
    if op == "dense":
        y = x @ values[name + "/weight"]
        return y + values[name + "/bias"] if name + "/bias" in values else y
    if op == "conv2d":
        return convolve(l, x)
    if op == "max_pool":
        return pool(l, x, F.max_pool2d)
    if op == "avg_pool":
        return pool(l, x, F.avg_pool2d)
    if op == "global_avg_pool":
        return x.mean((1, 2))
    if op == "batch_norm":
        return normalise(l, x)
    if op == "layer_norm":
        return F.layer_norm(x, x.shape[-1:], values[name + "/gamma"], values[name + "/beta"], l["epsilon"])
    if op == "dropout" and not l.get("rate"):
        return x
    if op == "flatten":
        return x.reshape(x.shape[0], -1)
    if op == "add":
        return sum(inputs[1:], x)
    if op == "concat":
        return torch.cat(inputs, -1)
    if op == "embedding":
        return values[name + "/weight"][x]
    if op == "position":
        return x + values[name + "/weight"]
    if op == "attention":
        return attend(l, *inputs)
    if op == "matmul":
        return x @ (inputs[1].transpose(1, 2) if l.get("transpose") else inputs[1])
    if op in ("relu", "gelu", "tanh", "sigmoid"):
        return {"relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[op](x)
    sys.exit("layer %s: the operation %s is not computed" % (name, op))


def outputs(x):
    done, last = {"input": x}, "input"
    for l in job["layers"]:
        done[l["name"]] = layer(l, [done[name] for name in l.get("inputs") or [last]])
        last = l["name"]
    return done[last]


def loss(y, answers):
    if job["loss"] == "mean_squared_error":
        return F.mse_loss(y.reshape(-1), answers.to(torch.float64))
    return F.cross_entropy(y.reshape(-1, y.shape[-1]), answers.long(), label_smoothing=job["label_smoothing"])


batch, ids = job["batch"], any(l["op"] == "embedding" for l in job["layers"])
features = read("features", types[job["features"]]).reshape([-1, batch] + job["shape"])
answers = read("answers", types[job["answers"]]).reshape(features.shape[0], -1)
for x, answer in zip(features, answers):
    x = x.long() if ids else x.to(torch.float64) * job["factor"]
    gradients = torch.autograd.grad(loss(outputs(x), answer), trained)
    with torch.no_grad():
        for value, gradient in zip(trained, gradients):
            value -= job["rate"] * gradient
flat = torch.cat([values[v["name"]].detach().reshape(-1) for v in job["variables"]]).cpu()
with open(folder + "/values.f64", "wb") as f:
    f.write(flat.numpy().tobytes())
