"""Makes pytorch.json: what PyTorch computes of the models of the zoo, and of some more, in float64.

Usage: python3 pytorch.py [MODEL…] > pytorch.json

Values and records are simple functions of their numbers, so that the Go test makes the
same ones. Weights are kept in PyTorch's order of dimensions here and are brought to
stoke's order (height, width, channels, filters; inputs, units) in the report.
"""

import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

UPDATES, BATCH, CLASSES = 20, 8, 10


def value(variable, i):
    """Returns a number from -1 to 1, of element i of a variable."""
    return math.sin(0.7 * variable + 1.3 * i + 0.001 * i * i)


def limit(shape, rectified):
    """Returns the limit of the uniform distribution that weights begin with."""
    fan_in = math.prod(shape[:-1])
    fan_out = shape[-1] * (shape[0] * shape[1] if len(shape) == 4 else 1)
    return math.sqrt(6 / fan_in) if rectified else math.sqrt(6 / (fan_in + fan_out))


def as_float32(x):
    return torch.tensor(x, dtype=torch.float32).to(torch.float64)


class Part:
    """A variable in stoke's layout, and the module's tensor that has it."""

    def __init__(self, name, tensor, kind, rectified=False):
        self.name, self.tensor, self.kind, self.rectified = name, tensor, kind, rectified

    def shape(self):
        t = self.tensor
        if self.kind == "conv":
            return [t.shape[2], t.shape[3], t.shape[1], t.shape[0]]
        if self.kind == "dense":
            return [t.shape[1], t.shape[0]]
        return list(t.shape)

    def to_stoke(self, t):
        if self.kind == "conv":
            return t.permute(2, 3, 1, 0).reshape(-1)
        if self.kind == "dense":
            return t.t().reshape(-1)
        return t.reshape(-1)

    def from_stoke(self, flat):
        shape = self.shape()
        if self.kind == "conv":
            return flat.reshape(shape).permute(3, 2, 0, 1)
        if self.kind == "dense":
            return flat.reshape(shape).t()
        return flat.reshape(self.tensor.shape)

    def start(self, number):
        shape = self.shape()
        n = math.prod(shape)
        if self.kind in ("conv", "dense", "small"):
            top = 0.02 * math.sqrt(3) if self.kind == "small" else limit(shape, self.rectified)
            flat = as_float32([value(number, i) * top for i in range(n)])
        elif self.kind == "gamma":
            flat = as_float32([1 + 0.1 * value(number, i) for i in range(n)])
        else:
            flat = as_float32([0.1 * value(number, i) for i in range(n)])
        with torch.no_grad():
            self.tensor.copy_(self.from_stoke(flat))


class Network(nn.Module):
    """Collects the variables in the order in which stoke lays them out."""

    def __init__(self):
        super().__init__()
        self.parts = []

    def inputs(self, update):
        """Returns the pictures of an update."""
        h, w, c = self.shape
        return pixels(update, h * w * c).reshape(BATCH, h, w, c).permute(0, 3, 1, 2)

    def loss(self, outputs, update):
        return F.cross_entropy(outputs, torch.tensor([r * 7 % CLASSES for r in numbers(update)]))

    def dense(self, name, inputs, units, rectified=False):
        l = nn.Linear(inputs, units)
        self.parts += [Part(name + "/weight", l.weight, "dense", rectified), Part(name + "/bias", l.bias, "bias")]
        self.add_module("layer_" + name.replace(".", "_"), l)
        return l

    def conv(self, name, inputs, filters, kernel, stride=1, padding=0, bias=True, rectified=True, groups=1):
        l = nn.Conv2d(inputs, filters, kernel, stride, padding, groups=groups, bias=bias)
        self.parts.append(Part(name + "/weight", l.weight, "conv", rectified))
        if bias:
            self.parts.append(Part(name + "/bias", l.bias, "bias"))
        self.add_module("layer_" + name.replace(".", "_"), l)
        return l

    def norm(self, name, channels, epsilon):
        l = nn.BatchNorm2d(channels, eps=epsilon)
        self.parts += [Part(name + "/gamma", l.weight, "gamma"), Part(name + "/beta", l.bias, "bias")]
        self.add_module("layer_" + name.replace(".", "_"), l)
        return l


def numbers(update):
    """Returns the numbers of an update's records."""
    return range(update * BATCH, (update + 1) * BATCH)


def byte(at):
    return (at * 2654435761 >> 16) & 255


def pixels(update, size):
    """Returns records of bytes as numbers from 0 to 1."""
    scale = float(torch.tensor(1 / 255, dtype=torch.float32))
    return as_float32([[byte(r * size + i) for i in range(size)] for r in numbers(update)]).mul(scale)


def waves(update, size):
    """Returns records of numbers from -1 to 1."""
    return as_float32([[math.sin(0.3 * (r * size + i)) for i in range(size)] for r in numbers(update)])


def flat(x):
    """Flattens channels last, as stoke does."""
    return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)


class Softmax(Network):
    shape = (28, 28, 1)

    def __init__(self):
        super().__init__()
        self.out = self.dense("output", 784, CLASSES)

    def forward(self, x):
        return self.out(flat(x))


class MLP(Network):
    shape = (28, 28, 1)

    def __init__(self):
        super().__init__()
        self.hidden = self.dense("hidden1", 784, 128, True)
        self.out = self.dense("output", 128, CLASSES)

    def forward(self, x):
        return self.out(F.relu(self.hidden(flat(x))))


class MNIST(Network):
    shape = (28, 28, 1)

    def __init__(self):
        super().__init__()
        self.a = self.conv("conv1", 1, 32, 3)
        self.b = self.conv("conv2", 32, 64, 3)
        self.n = self.norm("norm", 64, 1e-3)
        self.out = self.dense("output", 9216, CLASSES)

    def forward(self, x):
        return self.out(flat(F.max_pool2d(self.n(F.relu(self.b(F.relu(self.a(x))))), 2)))


class CIFAR(Network):
    shape = (32, 32, 3)

    def __init__(self):
        super().__init__()
        self.convs = [self.conv("conv1", 3, 32, 3, padding=1), self.conv("conv2", 32, 32, 3),
                      self.conv("conv3", 32, 64, 3, padding=1), self.conv("conv4", 64, 64, 3)]
        self.hidden = self.dense("hidden", 2304, 512, True)
        self.out = self.dense("output", 512, CLASSES)

    def forward(self, x):
        for i, conv in enumerate(self.convs):
            x = F.relu(conv(x))
            if i % 2:
                x = F.max_pool2d(x, 2)
        return self.out(F.relu(self.hidden(flat(x))))


class Residual(Network):
    shape = (32, 32, 3)

    def __init__(self, widths, blocks):
        super().__init__()
        self.stem = self.pair("conv", 3, widths[0], 3, 1)
        self.blocks, width_in = [], widths[0]
        for i, width in enumerate(widths):
            for j in range(blocks):
                name, stride = f"block{i + 1}.{j + 1}", 2 if i > 0 and j == 0 else 1
                one = self.pair(name + ".conv1", width_in, width, 3, stride)
                two = self.pair(name + ".conv2", width, width, 3, 1)
                short = self.pair(name + ".shortcut", width_in, width, 1, stride) if stride > 1 else None
                self.blocks.append((one, two, short))
                width_in = width
        self.out = self.dense("output", width_in, CLASSES)

    def pair(self, name, inputs, filters, kernel, stride):
        return (self.conv(name, inputs, filters, kernel, stride, kernel // 2, False), self.norm(name + ".norm", filters, 1e-5))

    def forward(self, x):
        run = lambda pair, x: pair[1](pair[0](x))
        x = F.relu(run(self.stem, x))
        for one, two, short in self.blocks:
            x = F.relu(run(two, F.relu(run(one, x))) + (run(short, x) if short else x))
        return self.out(x.mean((2, 3)))


class Linear(Network):
    shape = (28, 28, 1)

    def __init__(self):
        super().__init__()
        self.out = self.dense("output", 784, 2)

    def forward(self, x):
        return self.out(flat(x))

    def loss(self, outputs, update):
        return F.mse_loss(outputs, waves(update, 2))


class Numbers(Network):
    """A network for numbers, of rows."""

    def __init__(self):
        super().__init__()
        self.hidden = self.dense("hidden", 6, 16)
        self.out = self.dense("output", 16, 3)

    def inputs(self, update):
        return pixels(update, 6)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))

    def loss(self, outputs, update):
        return F.mse_loss(outputs, waves(update, 3))


class Groups(Network):
    """A network with convolutions of groups, trained with label smoothing."""

    shape = (10, 10, 4)

    def __init__(self):
        super().__init__()
        self.a = self.conv("groups", 4, 8, 3, padding=1, rectified=False, groups=2)
        self.b = self.conv("depthwise", 8, 16, 3, stride=2, padding=1, bias=False, rectified=False, groups=8)
        self.out = self.dense("output", 400, CLASSES)

    def forward(self, x):
        return self.out(flat(F.gelu(self.b(torch.tanh(self.a(x))))))

    def loss(self, outputs, update):
        return F.cross_entropy(outputs, torch.tensor([r * 7 % CLASSES for r in numbers(update)]), label_smoothing=0.1)


class Transformer(Network):
    positions, characters, width, heads = 16, 32, 128, 4

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(self.characters, self.width)
        self.place = nn.Parameter(torch.zeros(self.positions, self.width))
        self.parts += [Part("embedding/weight", self.embedding.weight, "small"), Part("position/weight", self.place, "small")]
        self.blocks = [self.block(f"block{i + 1}.") for i in range(4)]
        self.last = self.row_norm("norm")
        self.out = self.dense("output", self.width, self.characters)

    def row_norm(self, name):
        l = nn.LayerNorm(self.width, eps=1e-5)
        self.parts += [Part(name + "/gamma", l.weight, "gamma"), Part(name + "/beta", l.bias, "beta")]
        self.add_module("layer_" + name.replace(".", "_"), l)
        return l

    def block(self, name):
        w = self.width
        return [self.row_norm(name + "norm1")] + [self.dense(name + part, w, w) for part in ("query", "key", "value", "projection")] + [
            self.row_norm(name + "norm2"), self.dense(name + "hidden", w, 4 * w), self.dense(name + "output", 4 * w, w)]

    def text(self, update, first):
        """Returns the characters of an update's records from a place on."""
        t = self.positions
        return torch.tensor([[byte(r * t + i + first) % self.characters for i in range(t)] for r in numbers(update)])

    def inputs(self, update):
        return self.text(update, 0)

    def attend(self, q, k, v):
        split = lambda x: x.reshape(BATCH, self.positions, self.heads, -1).transpose(1, 2)
        weights = split(q) @ split(k).transpose(2, 3) / math.sqrt(self.width / self.heads)
        later = torch.ones(self.positions, self.positions, dtype=torch.bool).triu(1)
        mixed = weights.masked_fill(later, -math.inf).softmax(3) @ split(v)
        return mixed.transpose(1, 2).reshape(BATCH, self.positions, self.width)

    def forward(self, x):
        x = self.embedding(x) + self.place
        for norm1, query, key, value, projection, norm2, hidden, output in self.blocks:
            n = norm1(x)
            x = x + projection(self.attend(query(n), key(n), value(n)))
            x = x + output(F.gelu(hidden(norm2(x))))
        return self.out(self.last(x))

    def loss(self, outputs, update):
        return F.cross_entropy(outputs.reshape(-1, self.characters), self.text(update, 1).reshape(-1))


def report(network, first, updates, rate):
    for number, part in enumerate(network.parts):
        part.start(number)
    losses, gradients = [], None
    optimizer = torch.optim.SGD(network.parameters(), lr=rate)
    for update in range(first, first + updates):
        optimizer.zero_grad()
        loss = network.loss(network(network.inputs(update)), update)
        loss.backward()
        losses.append(loss.item())
        if gradients is None:
            gradients = [sketch(p, p.tensor.grad) for p in network.parts]
        optimizer.step()
    return {"rate": rate, "first": first, "losses": losses, "gradients": gradients, "values": [sketch(p, p.tensor.detach()) for p in network.parts]}


def sketch(part, tensor):
    """Returns a variable's name, its norm, its product with a fixed vector, and its first elements."""
    v = part.to_stoke(tensor)
    fixed = torch.cos(0.9 * torch.arange(v.numel()))
    return {"name": part.name, "norm": v.norm().item(), "product": v.dot(fixed).item(), "first": v[:3].tolist()}


models = {"softmax": Softmax, "mlp": MLP, "mnist-cnn": MNIST, "cifar-cnn": CIFAR,
          "resnet20": lambda: Residual([16, 32, 64], 3), "resnet18": lambda: Residual([64, 128, 256, 512], 2),
          "linear": Linear, "transformer": Transformer, "groups": Groups, "numbers": Numbers}
# At higher rates the losses follow from the rounding of the first updates.
rates = {"cifar-cnn": 1e-5, "resnet20": 2e-5, "transformer": 1e-2, "groups": 1e-2, "numbers": 1e-2}
# At the records before these some ReLU of the first update has an input so close to zero
# that its sign follows from the rounding of float32.
first_updates = {"resnet20": 125}
if __name__ == "__main__":
    print("PyTorch " + torch.__version__, file=sys.stderr)
    reports = {}
    for name in sys.argv[1:] or models:
        # ResNet-18 has 11 million parameters: two updates of it are enough.
        reports[name] = report(models[name](), first_updates.get(name, 0), 2 if name == "resnet18" else UPDATES, rates.get(name, 1e-4))
    json.dump(reports, sys.stdout, indent=1)
    print()
