from importlib.util import find_spec

import pytest

from workflow.checkout import Checkout, finished_tree


@pytest.fixture(scope="session")
def checkout(tmp_path_factory):
    """A working tree where nothing has run."""
    return Checkout(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A working tree where the tiny experiment has run; tests leave it as they found it."""
    return finished_tree(tmp_path_factory)


@pytest.fixture(scope="session")
def s3():
    """A client of moto's server on this machine, which speaks S3's protocol and takes any pair of keys."""
    needed = ("boto3", "dvc_s3", "moto", "snakemake_storage_plugin_s3")
    if missing := [name for name in needed if find_spec(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}; pip install --no-deps -r envs/s3.txt")
    import boto3
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "secret"}
    yield boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys)
    server.stop()
