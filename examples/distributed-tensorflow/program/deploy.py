"""Trains with parameter servers, in the shape of Helm's chart distributed-tensorflow.

One script is every process: a server ("ps") holds a part of the parameters and
serves for ever, a worker computes gradients and ends. The environment tells a
process which one it is: JOB_NAME, TASK_INDEX, PS_HOSTS and WORKER_HOSTS, and
TF_CONFIG for TensorFlow. Where TensorFlow is not installed, the same exchange
runs in plain Python, on a linear model.
"""

import json
import os
import random
import socket
import socketserver
import threading
import time

JOB, TASK = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
SERVERS = [h for h in os.environ["PS_HOSTS"].split(",") if h]
WORKERS = os.environ["WORKER_HOSTS"].split(",")
SIZE = 16  # parameters of the linear model


def check_environment():
    """Fails where TF_CONFIG and the chart's variables do not say the same."""
    config = json.loads(os.environ["TF_CONFIG"])
    assert config["task"] == {"type": JOB, "index": TASK}, config
    assert config["cluster"].get("ps", []) == SERVERS, config
    assert config["cluster"]["worker"] == WORKERS, config
    assert os.environ["POD_NAME"].endswith(f"-{JOB}-{TASK}")


def target():
    """Returns the parameters that training is to find."""
    source = random.Random(1)
    return [source.uniform(-1, 1) for _ in range(SIZE)]


def report(**values):
    print("stoke:", json.dumps(values), flush=True)


# In plain Python: a server has the parameters whose index is its own, modulo the
# number of servers. A request is one line of JSON, and so is its answer.


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def serve():
    """Holds parameters until it is ended."""
    values, lock = [0.0] * len(range(TASK, SIZE, len(SERVERS))), threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            for line in self.rfile:
                push = json.loads(line)
                with lock:
                    for i, change in enumerate(push):
                        values[i] += change
                    answer = json.dumps(values)
                self.wfile.write(answer.encode() + b"\n")

    host, port = SERVERS[TASK].rsplit(":", 1)
    with Server(("", int(port)), Handler) as server:
        print(f"serves {len(values)} parameters at {host}:{port}", flush=True)
        server.serve_forever()


def connect(address):
    host, port = address.rsplit(":", 1)
    for _ in range(600):
        try:
            return socket.create_connection((host, int(port))).makefile("rw")
        except OSError:
            time.sleep(0.1)  # the server is still starting
    raise SystemExit(f"the server at {address} does not answer")


def exchange(connections, changes):
    """Sends each server the changes of its parameters, and returns all parameters."""
    values = [0.0] * SIZE
    for task, c in enumerate(connections):
        c.write(json.dumps(changes[task :: len(connections)]) + "\n")
        c.flush()
        values[task :: len(connections)] = json.loads(c.readline())
    return values


def train(steps, batch, rate):
    """Fits a line through points of a known one, with the servers' parameters."""
    truth = target()
    data = random.Random(100 + TASK)
    connections = [connect(s) for s in SERVERS]
    values = exchange(connections, [0.0] * SIZE)
    for step in range(1, steps + 1):
        gradient, loss = [0.0] * SIZE, 0.0
        for _ in range(batch):
            x = [data.gauss(0, 1) for _ in range(SIZE)]
            error = sum(xi * (v - t) for xi, v, t in zip(x, values, truth))
            loss += error * error / batch
            gradient = [g + 2 * error * xi / batch for g, xi in zip(gradient, x)]
        values = exchange(connections, [-rate * g for g in gradient])
        if TASK == 0 and (step % 10 == 0 or step == steps):
            report(step=step, loss=loss)


def train_with_tensorflow(tf, steps, batch, rate):
    """Does the same with TensorFlow's own servers, each step on one worker."""
    tf1 = tf.compat.v1
    tf1.disable_eager_execution()
    cluster = tf1.train.ClusterSpec({"ps": SERVERS, "worker": WORKERS})
    server = tf.distribute.Server(cluster, job_name=JOB, task_index=TASK)
    if JOB == "ps":
        server.join()
    with tf.device(tf1.train.replica_device_setter(worker_device=f"/job:worker/task:{TASK}", cluster=cluster)):
        x = tf1.random_normal([batch, SIZE])
        truth = tf.constant([[v] for v in target()])
        values = tf1.get_variable("values", [SIZE, 1], initializer=tf1.zeros_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, values - truth)))
        step = tf1.train.get_or_create_global_step()
        update = tf1.train.GradientDescentOptimizer(rate).minimize(loss, global_step=step)
    checkpoints = os.environ.get("STOKE_CHECKPOINT_DIR")
    with tf1.train.MonitoredTrainingSession(
        master=server.target, is_chief=TASK == 0, checkpoint_dir=checkpoints,
        hooks=[tf1.train.StopAtStepHook(last_step=steps)],
    ) as session:
        while not session.should_stop():
            _, at, value = session.run([update, step, loss])
            if TASK == 0 and at % 10 == 0:
                report(step=int(at), loss=float(value))


def main():
    check_environment()
    with open(os.environ["STOKE_PARAMETERS"]) as file:
        p = json.load(file)
    arguments = int(p["trainsteps"]), int(p["batchsize"]), float(p["learningrate"])
    try:
        import tensorflow as tf
    except ImportError:
        print("TensorFlow is not installed: the exchange runs in plain Python", flush=True)
        return serve() if JOB == "ps" else train(*arguments)
    train_with_tensorflow(tf, *arguments)


if __name__ == "__main__":
    main()
