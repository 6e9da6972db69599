"""Everyday things with aiokafka."""

import asyncio
import time

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from checks import Checks, equal, eventually_async

CODECS = (None, "gzip", "snappy", "lz4", "zstd")


class Smoke:
    def __init__(self, brokers: str, admin: AIOKafkaAdminClient):
        self.brokers = brokers
        self.admin = admin

    async def create(self, topic: str, partitions: int = 1) -> None:
        await self.admin.create_topics([NewTopic(topic, partitions, 1)])

    async def send(self, topic: str, values: list[bytes], **config) -> None:
        producer = AIOKafkaProducer(bootstrap_servers=self.brokers, acks="all", **config)
        await producer.start()
        try:
            for value in values:
                await producer.send(topic, value, b"key")
        finally:
            await producer.stop()

    def consumer(self, *topics: str, **config) -> AIOKafkaConsumer:
        return AIOKafkaConsumer(
            *topics,
            bootstrap_servers=self.brokers,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            **config,
        )

    async def take(self, consumer: AIOKafkaConsumer, count: int) -> list:
        taken = []
        async with asyncio.timeout(30):
            while len(taken) < count:
                for messages in (await consumer.getmany(timeout_ms=500)).values():
                    taken.extend(messages)
        equal(len(taken), count)
        return taken

    async def read(self, topic: str, count: int, **config) -> list:
        consumer = self.consumer(topic, **config)
        await consumer.start()
        try:
            return await self.take(consumer, count)
        finally:
            await consumer.stop()

    async def admin_topics(self) -> None:
        await self.create("aio.admin", 2)
        await self.admin.create_partitions({"aio.admin": NewPartitions(5)})
        await eventually_async(self.partitions_described, 5)
        await self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "aio.admin", {"retention.ms": "3600000"})])
        await eventually_async(self.retention, "3600000")
        await self.admin.delete_topics(["aio.admin"])
        await eventually_async(self.listed, False)

    async def partitions_described(self) -> int:
        return len((await self.admin.describe_topics(["aio.admin"]))[0]["partitions"])

    async def retention(self) -> str:
        answers = await self.admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, "aio.admin")])
        return {entry[0]: entry[1] for entry in answers[0].resources[0][4]}["retention.ms"]

    async def listed(self) -> bool:
        return "aio.admin" in await self.admin.list_topics()

    def codec(self, codec):
        async def check():
            topic = f"aio.{codec}"
            await self.create(topic)
            values = [f"{codec} {i} ".encode() * 20 for i in range(200)]
            await self.send(topic, values, compression_type=codec, linger_ms=50)
            equal([m.value for m in await self.read(topic, 200)], values)

        return check

    async def headers(self) -> None:
        await self.create("aio.headers")
        producer = AIOKafkaProducer(bootstrap_servers=self.brokers)
        await producer.start()
        await producer.send_and_wait("aio.headers", None, b"k", headers=[("a", b"1"), ("a", b"2"), ("empty", b"")])
        await producer.stop()
        message = (await self.read("aio.headers", 1))[0]
        equal((message.key, message.value, message.headers), (b"k", None, (("a", b"1"), ("a", b"2"), ("empty", b""))))

    async def seek_by_time(self) -> None:
        await self.create("aio.time")
        start = int(time.time() * 1000) - 10_000
        producer = AIOKafkaProducer(bootstrap_servers=self.brokers)
        await producer.start()
        for i in range(10):
            await producer.send_and_wait("aio.time", str(i).encode(), timestamp_ms=start + i * 1000)
        await producer.stop()
        consumer, place = self.consumer(), TopicPartition("aio.time", 0)
        await consumer.start()
        consumer.assign([place])
        found = await consumer.offsets_for_times({place: start + 4500})
        equal(found[place].offset, 5)
        equal((await consumer.offsets_for_times({place: start + 60_000}))[place], None)
        equal(await consumer.beginning_offsets([place]), {place: 0})
        equal(await consumer.end_offsets([place]), {place: 10})
        consumer.seek(place, found[place].offset)
        equal((await self.take(consumer, 5))[0].value, b"5")
        await consumer.stop()

    async def group_commit(self) -> None:
        await self.create("aio.group", 3)
        await self.send("aio.group", [str(i).encode() for i in range(30)])
        first = self.consumer("aio.group", group_id="aio.group")
        await first.start()
        await self.take(first, 30)
        await first.commit()
        await first.stop()
        await self.send("aio.group", [b"late"])
        equal([m.value for m in await self.read("aio.group", 1, group_id="aio.group")], [b"late"])
        groups = await self.admin.list_consumer_groups()
        if ("aio.group", "consumer") not in [tuple(g[:2]) for g in groups]:
            raise AssertionError(f"the group is not listed: {groups}")

    async def static_member(self) -> None:
        await self.create("aio.static", 2)
        config = {"group_id": "aio.static", "group_instance_id": "one", "session_timeout_ms": 10_000}
        for _ in range(2):
            consumer = self.consumer("aio.static", **config)
            await consumer.start()
            equal(len(consumer.assignment()), 2)
            await consumer.stop()

    async def transaction(self) -> None:
        await self.create("aio.txn")
        producer = AIOKafkaProducer(bootstrap_servers=self.brokers, transactional_id="aio.txn")
        await producer.start()
        for kept in (True, False, True):
            await producer.begin_transaction()
            await producer.send_and_wait("aio.txn", str(kept).encode())
            await (producer.commit_transaction() if kept else producer.abort_transaction())
        await producer.stop()
        values = [m.value for m in await self.read("aio.txn", 2, isolation_level="read_committed")]
        equal(values, [b"True", b"True"])


async def smoke(brokers: str) -> None:
    checks = Checks()
    admin = AIOKafkaAdminClient(bootstrap_servers=brokers)
    await admin.start()
    s = Smoke(brokers, admin)
    await checks.run_async("admin", s.admin_topics)
    for codec in CODECS:
        await checks.run_async(f"codec {codec or 'none'}", s.codec(codec))
    await checks.run_async("headers", s.headers)
    await checks.run_async("seek by time", s.seek_by_time)
    await checks.run_async("group commit", s.group_commit)
    await checks.run_async("static member", s.static_member)
    checks.not_applicable("cooperative rebalance", "aiokafka rebalances eagerly only")
    await checks.run_async("transaction", s.transaction)
    await admin.close()
    checks.finish()
