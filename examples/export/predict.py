"""Predicts with a model that "stoke export" has written, in PyTorch.

Usage: python3 predict.py MODEL.safetensors RECORDS

RECORDS is an IDX file, such as MNIST's t10k-images-idx3-ubyte, or the bytes of the
records one after the other, in the type and shape that the model wants. Each line of the
output has the logits of one record, as a JSON list.

Only PyTorch is needed. Network is a torch.nn.Module with a parameter for each variable
of the file, so that other programs can go on from it: load(path) returns one.
"""

import json
import math
import struct
import sys

import torch
from torch.nn import functional as F

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}
INPUTS = {"u8": torch.uint8, "i32": torch.int32, "i64": torch.int64, "f32": torch.float32}


def read_safetensors(path):
    """Returns the tensors of a file by name, and its metadata."""
    with open(path, "rb") as f:
        header = json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))
        data = bytearray(f.read())
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        dtype = DTYPES[entry["dtype"]]
        if first == last:
            tensors[name] = torch.empty(entry["shape"], dtype=dtype)
            continue
        count = math.prod(entry["shape"])
        tensors[name] = torch.frombuffer(data, dtype=dtype, count=count, offset=first).reshape(entry["shape"]).float()
    return tensors, metadata


class Network(torch.nn.Module):
    """A model of stoke. Tensors between layers are records × height × width × channels,
    as stoke has them; convolutions and pools see them in PyTorch's order."""

    def __init__(self, model, tensors):
        super().__init__()
        self.model = model
        for name, t in tensors.items():
            if name.endswith(("/mean", "/variance")):
                self.register_buffer(attribute(name), t)
            else:
                self.register_parameter(attribute(name), torch.nn.Parameter(t))

    def value(self, layer, name):
        return getattr(self, attribute(layer["name"] + "/" + name))

    def bias(self, layer):
        return None if layer.get("no_bias") else self.value(layer, "bias")

    def forward(self, records):
        """Returns the logits of records, which have the input's type and shape."""
        source = self.model["input"]
        if any(layer["op"] == "embedding" for layer in self.model["layers"]):
            x = records.long()  # ids
        else:
            x = records.float() * (source.get("scale") or (1 / 255 if source["type"] == "u8" else 1))
        sequence = self.model.get("target", {}).get("shape") and self.model["classes"]
        if len(source["shape"]) == 2 and not sequence:
            x = x.unsqueeze(-1)
        done, last = {"input": x}, x
        for layer in self.model["layers"]:
            inputs = [done[name] for name in layer["inputs"]] if layer.get("inputs") else [last]
            last = done[layer["name"]] = getattr(self, "op_" + layer["op"])(layer, *inputs)
        return last

    def op_dense(self, layer, x):
        x = x @ self.value(layer, "weight")  # inputs × units
        return x if layer.get("no_bias") else x + self.bias(layer)

    def op_conv2d(self, layer, x):
        weight = self.value(layer, "weight").permute(3, 2, 0, 1)  # height, width, channels, filters → filters first
        kernel, stride, pad = layer["kernel"], layer.get("stride") or 1, layer.get("pad", 0)
        sides = [pad] * 4
        if layer.get("padding") == "same":
            sides = same(x.shape[2], kernel, stride) + same(x.shape[1], kernel, stride)
        x = F.pad(x.permute(0, 3, 1, 2), sides)
        return F.conv2d(x, weight, self.bias(layer), stride, groups=layer.get("groups") or 1).permute(0, 2, 3, 1)

    def op_max_pool(self, layer, x):
        return pooled(F.max_pool2d, layer, x)

    def op_avg_pool(self, layer, x):
        return pooled(F.avg_pool2d, layer, x)

    def op_global_avg_pool(self, layer, x):
        return x.mean((1, 2))

    def op_batch_norm(self, layer, x):
        scale = self.value(layer, "gamma") / torch.sqrt(self.value(layer, "variance") + (layer.get("epsilon") or 1e-3))
        return (x - self.value(layer, "mean")) * scale + self.value(layer, "beta")

    def op_layer_norm(self, layer, x):
        gamma, beta = self.value(layer, "gamma"), self.value(layer, "beta")
        return F.layer_norm(x, gamma.shape, gamma, beta, layer.get("epsilon") or 1e-3)

    def op_relu(self, layer, x):
        return F.relu(x)

    def op_gelu(self, layer, x):
        return F.gelu(x)

    def op_tanh(self, layer, x):
        return torch.tanh(x)

    def op_sigmoid(self, layer, x):
        return torch.sigmoid(x)

    def op_dropout(self, layer, x):
        return F.dropout(x, layer.get("rate", 0), self.training)

    def op_flatten(self, layer, x):
        return x.flatten(1)  # height, width, channels: in PyTorch's order it would be another one

    def op_add(self, layer, *inputs):
        return sum(inputs[1:], inputs[0])

    def op_embedding(self, layer, x):
        return F.embedding(x, self.value(layer, "weight"))

    def op_position(self, layer, x):
        return x + self.value(layer, "weight")

    def op_attention(self, layer, queries, keys, values):
        split = lambda x: x.unflatten(-1, (layer["heads"], -1)).transpose(1, 2)  # records × heads × positions × part
        q, k, v = split(queries), split(keys), split(values)
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        if layer.get("causal"):
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)

    def op_matmul(self, layer, a, b):
        return a @ (b.transpose(-1, -2) if layer.get("transpose") else b)

    def op_concat(self, layer, *inputs):
        return torch.cat(inputs, -1)


def attribute(name):
    """Returns the name of a variable without dots, which PyTorch does not allow."""
    return name.replace(".", ":")


def same(length, kernel, stride):
    """Returns the zeros before and behind one dimension, as TensorFlow places them."""
    zeros = max((math.ceil(length / stride) - 1) * stride + kernel - length, 0)
    return [zeros // 2, zeros - zeros // 2]


def pooled(function, layer, x):
    if layer.get("padding", "valid") != "valid":
        raise ValueError("layer %s: pools have no padding" % layer["name"])
    stride = layer.get("stride") or layer["kernel"]
    return function(x.permute(0, 3, 1, 2), layer["kernel"], stride).permute(0, 2, 3, 1)


def load(path):
    """Returns the network of a file, ready to predict."""
    tensors, metadata = read_safetensors(path)
    return Network(json.loads(metadata["model"]), tensors).eval()


def read_records(path, source):
    """Returns the records of an IDX file, or of a file of nothing but records."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:3] == b"\0\0\x08":  # IDX of bytes: magic number, dimensions, records
        dimensions = struct.unpack_from(">%dI" % data[3], data, 4)
        if len(data) == 4 + 4 * data[3] + math.prod(dimensions):
            data = data[4 + 4 * data[3]:]
    records = torch.frombuffer(bytearray(data), dtype=INPUTS[source["type"]])
    return records.reshape([-1] + source["shape"])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    network = load(sys.argv[1])
    records = read_records(sys.argv[2], network.model["input"])
    with torch.no_grad():
        for batch in records.split(256):
            for logits in network(batch).tolist():
                print(json.dumps(logits))


if __name__ == "__main__":
    main()
