"""aiokafka. The contract is in ../README.md."""

import asyncio
import signal
import sys

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener


async def produce(brokers: str, topic: str, path: str) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=brokers, acks="all", compression_type="lz4", max_batch_size=256 * 1024, linger_ms=5
    )
    await producer.start()
    try:
        waiting = []
        with open(path, "rb") as lines:
            for line in lines:
                key, value = line.rstrip(b"\n").split(b"\t", 1)
                waiting.append(await producer.send(topic, value, key))
                if len(waiting) == 20_000:
                    await asyncio.gather(*waiting)
                    waiting.clear()
        await asyncio.gather(*waiting)
    finally:
        await producer.stop()


class Member(ConsumerRebalanceListener):
    """One member: writes what it gets, commits what it wrote."""

    def __init__(self, consumer: AIOKafkaConsumer, out_path: str):
        self.consumer = consumer
        self.out = open(out_path, "ab", buffering=1 << 20)
        self.written = 0
        self.committed = 0
        self.batch = asyncio.Lock()  # a revocation waits until the batch at hand is committed

    async def on_partitions_revoked(self, revoked):
        async with self.batch:
            await self.commit()

    async def on_partitions_assigned(self, assigned):
        pass

    async def commit(self):
        if self.committed == self.written:
            return
        self.out.flush()
        await self.consumer.commit()
        self.committed = self.written
        print(f"committed {self.committed}", flush=True)

    async def step(self):
        async with self.batch:
            records = await self.consumer.getmany(timeout_ms=200, max_records=5000)
            for partition, messages in records.items():
                for message in messages:
                    self.out.write(
                        b"%s\t%d\t%d\t%s\t%s\n"
                        % (partition.topic.encode(), partition.partition, message.offset, message.key, message.value)
                    )
                self.written += len(messages)
            await self.commit()


async def consume(brokers: str, group: str, out_path: str, topics: list[str]) -> None:
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=brokers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=10000,
        heartbeat_interval_ms=1000,
    )
    member = Member(consumer, out_path)
    consumer.subscribe(topics, listener=member)
    await consumer.start()
    try:
        while not stopping.is_set():
            await member.step()
    finally:
        await consumer.stop()


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "produce":
        asyncio.run(produce(*rest))
    elif verb == "consume":
        asyncio.run(consume(rest[0], rest[1], rest[2], rest[3:]))
    elif verb == "smoke":
        from aiokafka_smoke import smoke

        asyncio.run(smoke(rest[0]))
    else:
        sys.exit(f"unknown verb {verb}")
