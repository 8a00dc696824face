"""Two processes on the gloo backend against one, on the same prepared views."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from safetensors.torch import load_file
from torch import nn
from torch.overrides import TorchFunctionMode

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders.batch_norm import WeightedBatchNorm
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.contrastive import SampledViews
from graphsc.training import distributed
from graphsc.training.distributed import (
    Distributed,
    SyncBatchNorm,
    convert_sync_batchnorm,
    gather_rows,
)

# AD-GCL and CGC draw a number for every edge while they encode, so that their views cannot be prepared.
DISTRIBUTED_METHODS = (
    "graphsc", "graphsc-mse", "graphcl", "joaov2", "simgrace", "rgcl", "infograph", "lagraph",
    "infomax", "edgepred", "attrmasking", "contextpred", "graphlog",
    "cuco", "mvgrl", "graphmae", "gcc", "grace", "gca", "progcl", "vgae", "gic", "subgcon", "bgrl",
)  # fmt: skip
# Methods that `begin`: with prototypes, a memory or weights from the start, so that their loss term exists.
SETTINGS = {"graphlog": {"local_epochs": 0}, "cuco": {"negatives": 4}, "progcl": {"fit_after": 0}}


def gradients(name, collection, shards, group):
    """Losses and gradients of each player on views of the shards of a batch, one generator each."""
    method = make_recipe(name, collection, SETTINGS.get(name)).build(collection.features, 0).double()
    if name in SETTINGS:
        method.begin(collection, torch.Generator().manual_seed(9))
    if group.world_size > 1:
        convert_sync_batchnorm(method)
    found = {}
    parts = []
    for number, rows in enumerate(shards):
        torch.manual_seed(0)
        batch = GraphBatch.gather(collection, rows)
        parts.append(method.views(batch, torch.Generator().manual_seed(number)))
    own = [parts[group.rank]] if group.world_size > 1 else parts
    for player in method.players():
        torch.manual_seed(5)
        if group.world_size > 1:
            encoded = group.gather(method.encode(own[0], player.name))
        else:
            encoded = joined_encoding(method, own, player.name)
        torch.manual_seed(6)
        losses = method.objective(encoded, player.name)
        total = torch.stack(list(losses.values())).sum()
        method.zero_grad(set_to_none=True)
        total.backward()
        group.average_gradients(player.parameters)
        found[player.name] = (
            float(total.detach()),
            [torch.zeros_like(p) if p.grad is None else p.grad for p in player.parameters],
        )
    return found


def joined_encoding(method, parts, player):
    """Encode the views of both shards in one process: joined, with BatchNorm over them together."""
    from graphsc.data.batch import join

    views = {name: join([part[name] for part in parts]) for name in parts[0]}
    if isinstance(parts[0], SampledViews):
        sampled = {name: torch.cat([part.sampled[name] for part in parts]) for name in parts[0].sampled}
        views = SampledViews(views, **sampled)
    return method.encode(views, player)


def on_a_rank(rank, size, port, work, folder):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.save(work(Distributed.current()), folder / f"{rank}.pt")
    dist.destroy_process_group()


def all_work(group):
    """All that is asked of two ranks, at once: each process pays seconds for its imports."""
    works = work_gradients, work_gather, work_counted, devices_of_messages  # the last one changes torch
    return {work.__name__: work(group) for work in works}


@pytest.fixture(scope="module")
def of_ranks(tmp_path_factory):
    """`of_ranks(work)`: the results of one of `all_work` on both ranks."""
    found = on_two_ranks(all_work, tmp_path_factory.mktemp("ranks"))
    return lambda work: [rank[work.__name__] for rank in found]


def on_two_ranks(work, folder):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    multiprocessing.spawn(on_a_rank, (2, port, work, folder), nprocs=2)
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]


SHARDS = (np.arange(0, 14), np.arange(14, 24))  # of unequal size


def work_gradients(group):
    collection = open_collection("motifs:24")
    return {name: gradients(name, collection, SHARDS, group) for name in DISTRIBUTED_METHODS}


def work_gather(group):
    rows = torch.arange(2.0 * (group.rank + 1)).reshape(-1, 2).requires_grad_()
    other = torch.full((group.rank, 3), 7.0)  # none on the first rank
    whole, beside = gather_rows(rows, other)
    (whole * torch.arange(len(whole))[:, None]).sum().backward()
    return whole.detach(), beside, rows.grad


def test_rows_of_unequal_ranks_are_gathered_in_order_and_gradients_come_back(of_ranks):
    (whole, beside, first), (again, also, second) = of_ranks(work_gather)
    assert beside.tolist() == also.tolist() == [[7.0] * 3]
    torch.testing.assert_close(whole, torch.tensor([[0.0, 1.0], [0.0, 1.0], [2.0, 3.0]]))
    torch.testing.assert_close(whole, again)
    # Both ranks hold the whole sum, so each row's weight comes back from both.
    torch.testing.assert_close(first, torch.tensor([[0.0, 0.0]]))
    torch.testing.assert_close(second, torch.tensor([[2.0, 2.0], [4.0, 4.0]]))


ROWS = torch.arange(24.0, dtype=torch.float64).reshape(6, 4).sin() + 3  # two parts on each of two ranks
COUNTS = torch.tensor([3, 1, 2, 4, 2, 5])
WHERE = {0: ([0, 1, 3], [2, 1]), 1: ([2, 4, 5], [1, 2])}  # rows of rank, and how many in each part
PULL = torch.arange(17 * 4.0, dtype=torch.float64).reshape(17, 4).cos()  # of the 17 nodes they stand for


def work_counted(group):
    rows, parts = WHERE[group.rank]
    norm = nn.ModuleList([WeightedBatchNorm(4).double()])
    convert_sync_batchnorm(norm)
    own = ROWS[rows].requires_grad_()
    found = norm[0](own, COUNTS[rows], parts)
    nodes = PULL.split(COUNTS.tolist())
    sum((y * nodes[row].sum(0)).sum() for y, row in zip(found, rows, strict=True)).backward()
    return found.detach(), own.grad, norm[0].weight.grad, norm[0].running_var


def test_weighted_rows_over_two_ranks_are_normalised_as_their_nodes_are_by_torch(of_ranks):
    ranks = of_ranks(work_counted)
    rows, plain = ROWS.clone().requires_grad_(), nn.BatchNorm1d(4).double()
    nodes, pull = rows.repeat_interleave(COUNTS, 0), PULL.split(COUNTS.tolist())
    written = nodes.split(COUNTS.tolist())
    total, expected = 0.0, {}
    for part in ([0, 1, 2], [3, 4, 5]):  # nodes of both ranks together
        normed = plain(torch.cat([written[row] for row in part])).split([int(COUNTS[row]) for row in part])
        expected |= {row: y[0].detach() for row, y in zip(part, normed, strict=True)}
        total = total + sum((y * pull[row]).sum() for y, row in zip(normed, part, strict=True))
    total.backward()
    for rank, (found, gradient, _, variance) in enumerate(ranks):
        mine = WHERE[rank][0]
        torch.testing.assert_close(found, torch.stack([expected[row] for row in mine]))
        torch.testing.assert_close(gradient, rows.grad[mine])
        torch.testing.assert_close(variance, plain.running_var)
    torch.testing.assert_close(ranks[0][2] + ranks[1][2], plain.weight.grad)


class OnCuda(torch.Tensor):
    """A tensor that says it is on a GPU, where there is none."""

    device = property(lambda self: torch.device("cuda", 0))


class PretendedGpu(TorchFunctionMode):
    """Makes tensors that are asked for on a GPU."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if torch.device(kwargs.get("device") or "cpu").type != "cuda":
            return function(*args, **kwargs)
        return function(*args, **{**kwargs, "device": "cpu"}).as_subclass(OnCuda)


@pytest.fixture
def only_cuda(monkeypatch, tmp_path):
    """A group of one process that serves tensors on a GPU alone, as NCCL does; gives its messages."""
    dist.init_process_group("cuda:gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    messages = []

    def all_reduce(tensor, op=None):
        dist.group.WORLD._get_backend(tensor.device)  # raises what `dist.all_reduce` would
        messages.append(tensor)

    def all_gather(received, tensor):
        all_reduce(tensor)
        all_reduce(received[0])
        received[0].copy_(tensor)

    served = {"all_reduce": all_reduce, "all_gather": all_gather}
    for name in set(dist.distributed_c10d.__all__) & set(vars(dist)):
        if name in served:
            monkeypatch.setattr(dist, name, served[name])
        elif name.startswith(("all_", "reduce", "broadcast", "gather", "scatter", "send", "recv", "barrier")):
            monkeypatch.delattr(dist, name)  # not one that chooses a device itself
    yield messages
    dist.destroy_process_group()


def test_a_group_of_gpus_serves_no_tensor_on_the_cpu(only_cuda):
    with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
        Distributed(0, 2).max_over_ranks(1)


def test_messages_of_the_trainer_are_on_its_device(only_cuda):
    group = Distributed(0, 2, torch.device("cuda", 0))
    with PretendedGpu():
        assert group.max_over_ranks(3) == 3
        assert group.max_over_ranks(None) is None
        group.barrier()
    assert len(only_cuda) == 3


def test_rows_gradients_and_moments_are_sent_from_their_device(only_cuda):
    group = Distributed(0, 2, torch.device("cuda", 0))
    with PretendedGpu():
        rows = torch.ones(3, 2, device="cuda")
        weight = torch.ones(2, device="cuda").requires_grad_()
        assert group.gather({"anchor": rows})["anchor"].tolist() == rows.tolist()
        group.average_gradients([weight])  # without a gradient, which counts as zero
        SyncBatchNorm(2).reduce_moments(torch.ones(1, 5, device="cuda"))
    assert len(only_cuda) == 2 * 2 + 1 + 2


def devices_of_messages(group):
    """The devices of all tensors that a short training sends, where new tensors are elsewhere by default."""
    from graphsc.training.distributed import make_fabric
    from graphsc.training.trainer import Trainer, TrainSettings

    found = set()

    def recorded(function):
        def call(*args, **kwargs):
            tensors = [t for value in args for t in (value if isinstance(value, list) else [value])]
            found.update(t.device.type for t in tensors if isinstance(t, torch.Tensor))
            return function(*args, **kwargs)

        return call

    for name in ("all_reduce", "all_gather", "broadcast", "reduce", "all_gather_object", "barrier"):
        setattr(dist, name, recorded(getattr(dist, name)))
    once = Distributed.max_over_ranks

    def elsewhere(self, number):
        with torch.device("meta"):
            return once(self, number)

    Distributed.max_over_ranks = elsewhere
    collection = open_collection("motifs:24")
    method = make_recipe("graphsc", collection).build(collection.features, 0)
    settings = TrainSettings(epochs=1, batch_size=12)
    Trainer(method, collection, settings, make_fabric("cpu", "full")).run()
    return sorted(found)


def test_no_message_of_a_training_on_cpus_is_off_the_device(of_ranks):
    assert of_ranks(devices_of_messages) == [["cpu"], ["cpu"]]


@pytest.mark.parametrize("name", DISTRIBUTED_METHODS)
def test_loss_and_gradients_over_two_ranks_are_those_of_one(of_ranks, name):
    assert METHODS.get(name).kind == "trained"
    one = gradients(name, open_collection("motifs:24"), SHARDS, Distributed())
    for rank in of_ranks(work_gradients):
        for player, (loss, gradient) in one.items():
            assert rank[name][player][0] == pytest.approx(loss, rel=1e-9)
            for ours, theirs in zip(rank[name][player][1], gradient, strict=True):
                torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)


def trained(folder, epochs):
    command = [
        sys.executable,
        "-m",
        "graphsc",
        "train",
        "motifs:40",
        "--method",
        "simgrace",
        "--devices",
        "2",
    ]
    command += ["--epochs", str(epochs), "--out", str(folder)]
    found = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert found.returncode == 0, found.stderr
    return found


@pytest.mark.slow
def test_two_ranks_resume_exactly_and_one_prints(tmp_path):
    whole = trained(tmp_path / "whole", 3)
    assert whole.stdout.count("dimensions") == 1
    trained(tmp_path / "parts", 1)
    trained(tmp_path / "parts", 3)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "parts"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=0, atol=0)


@pytest.mark.slow
def test_another_number_of_ranks_is_refused(tmp_path):
    trained(tmp_path / "run", 1)
    command = [sys.executable, "-m", "graphsc", "train", "motifs:40", "--method", "simgrace", "--epochs", "2"]
    found = subprocess.run([*command, "--out", str(tmp_path / "run")], capture_output=True, text=True)
    assert found.returncode == 2
    assert "ranks: 2 against None" in found.stderr


@pytest.mark.slow
def test_torchrun_needs_no_devices(tmp_path):
    trained(tmp_path / "ours", 1)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "graphsc", "train", "motifs:40", "--method", "simgrace", "--epochs", "1"]
    subprocess.run([*command, "--out", str(tmp_path / "torchrun")], check=True, capture_output=True)
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("ours", "torchrun"))
    for name, value in one.items():
        torch.testing.assert_close(value, two[name], rtol=0, atol=0)


@pytest.fixture
def under_torchrun(monkeypatch):
    """What torchrun tells each of two processes on each of three machines."""
    for name, value in {"TORCHELASTIC_RUN_ID": "a", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "3"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("asked", [(1, 1), (2, 3)])
def test_processes_and_machines_are_those_of_torchrun(under_torchrun, asked):
    assert distributed._as_launched(*asked) == (2, 3)


def test_numbers_other_than_those_of_torchrun_are_refused(under_torchrun):
    message = "torchrun started 2 processes on each of 3 machines, not 4 on 1; leave out --devices"
    with pytest.raises(ConfigError, match=message):
        distributed._as_launched(4, 1)


def test_without_torchrun_the_numbers_are_as_asked():
    assert distributed._as_launched(4, 2) == (4, 2)


@pytest.mark.parametrize(
    ("tasks", "processes", "by_srun"), [("2", 2, True), ("4", 2, False), ("1", 1, False)]
)
def test_only_as_many_tasks_of_slurm_as_processes_are_its_launch(monkeypatch, tasks, processes, by_srun):
    """Fabric would refuse two devices in a job with four tasks."""
    monkeypatch.setenv("SLURM_NTASKS", tasks)
    assert distributed._is_launched(processes) is by_srun


def test_a_single_process_trains_inside_a_job_of_slurm_with_many_tasks(monkeypatch):
    job = {
        "NTASKS": "4",
        "NTASKS_PER_NODE": "4",
        "JOB_NAME": "compare",
        "PROCID": "2",
        "LOCALID": "2",
        "NODEID": "0",
    }
    for name, value in {**job, "JOB_ID": "7", "JOB_NODELIST": "localhost"}.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    fabric = distributed.make_fabric("cpu", "full")
    assert (fabric.world_size, fabric.global_rank) == (1, 0)
