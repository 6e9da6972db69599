"""Everyday things with confluent-kafka (librdkafka)."""

import time

from checks import Checks, equal, eventually
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


class Smoke:
    def __init__(self, brokers: str):
        self.brokers = brokers
        self.admin = AdminClient({"bootstrap.servers": brokers})

    def create(self, topic: str, partitions: int = 1) -> None:
        self.admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result(30)

    def producer(self, **config) -> Producer:
        return Producer({"bootstrap.servers": self.brokers, "acks": "all", **config})

    def consumer(self, group: str, **config) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self.brokers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            }
        )

    def take(self, consumer: Consumer, count: int, limit: float = 30) -> list:
        taken, end = [], time.monotonic() + limit
        while len(taken) < count and time.monotonic() < end:
            for message in consumer.consume(count - len(taken), timeout=0.5):
                if message.error():
                    raise RuntimeError(message.error())
                taken.append(message)
        equal(len(taken), count)
        return taken

    def admin_topics(self) -> None:
        self.create("rd.admin", 2)
        self.admin.create_partitions([NewPartitions("rd.admin", 5)])["rd.admin"].result(30)
        eventually(lambda: len(self.admin.list_topics("rd.admin", timeout=30).topics["rd.admin"].partitions), 5)
        equal(list(self.admin.list_topics(timeout=30).brokers), [1])
        resource = ConfigResource(ConfigResource.Type.TOPIC, "rd.admin", set_config={"retention.ms": "3600000"})
        self.admin.alter_configs([resource])[resource].result(30)
        resource = ConfigResource(ConfigResource.Type.TOPIC, "rd.admin")
        eventually(lambda: self.admin.describe_configs([resource])[resource].result(30)["retention.ms"].value, "3600000")
        self.admin.delete_topics(["rd.admin"])["rd.admin"].result(30)
        eventually(lambda: "rd.admin" in self.admin.list_topics(timeout=30).topics, False)

    def codec(self, codec: str):
        def check():
            topic = f"rd.{codec}"
            self.create(topic)
            producer = self.producer(**{"compression.type": codec, "linger.ms": 50})
            values = [f"{codec} {i} ".encode() * 20 for i in range(200)]
            for value in values:
                producer.produce(topic, value, b"key")
            equal(producer.flush(30), 0)
            consumer = self.consumer("rd.codec")
            consumer.assign([TopicPartition(topic, 0, 0)])
            equal([m.value() for m in self.take(consumer, 200)], values)
            consumer.close()

        return check

    def headers(self) -> None:
        self.create("rd.headers")
        producer = self.producer()
        headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("none", None)]
        producer.produce("rd.headers", None, b"k", headers=headers)
        equal(producer.flush(30), 0)
        consumer = self.consumer("rd.headers")
        consumer.assign([TopicPartition("rd.headers", 0, 0)])
        message = self.take(consumer, 1)[0]
        equal((message.key(), message.value(), message.headers()), (b"k", None, headers))
        consumer.close()

    def seek_by_time(self) -> None:
        self.create("rd.time")
        producer = self.producer()
        start = int(time.time() * 1000) - 10_000
        for i in range(10):
            producer.produce("rd.time", str(i), timestamp=start + i * 1000)
        equal(producer.flush(30), 0)
        consumer = self.consumer("rd.time")
        found = consumer.offsets_for_times([TopicPartition("rd.time", 0, start + 4500)], timeout=30)
        equal(found[0].offset, 5)
        beyond = consumer.offsets_for_times([TopicPartition("rd.time", 0, start + 60_000)], timeout=30)
        equal(beyond[0].offset, -1)
        consumer.assign(found)
        equal(self.take(consumer, 1)[0].value(), b"5")
        equal(consumer.get_watermark_offsets(TopicPartition("rd.time", 0), timeout=30), (0, 10))
        consumer.close()

    def group_commit(self) -> None:
        self.create("rd.group", 3)
        producer = self.producer()
        for i in range(30):
            producer.produce("rd.group", str(i), partition=i % 3)
        equal(producer.flush(30), 0)
        first = self.consumer("rd.group")
        first.subscribe(["rd.group"])
        self.take(first, 30)
        first.commit(asynchronous=False)
        first.close()
        second = self.consumer("rd.group")
        second.subscribe(["rd.group"])
        producer.produce("rd.group", "late", partition=1)
        equal(producer.flush(30), 0)
        equal([m.value() for m in self.take(second, 1)], [b"late"])
        described = self.admin.describe_consumer_groups(["rd.group"])["rd.group"].result(30)
        equal((described.state.name, len(described.members)), ("STABLE", 1))
        second.close()
        self.admin.delete_consumer_groups(["rd.group"])["rd.group"].result(30)

    def static_member(self) -> None:
        self.create("rd.static", 2)
        config = {"group.instance.id": "one", "session.timeout.ms": 10_000}
        first = self.consumer("rd.static", **config)
        first.subscribe(["rd.static"])
        member = self.joined(first)
        first.close()  # a static member does not leave
        second = self.consumer("rd.static", **config)
        second.subscribe(["rd.static"])
        if self.joined(second) == member:
            raise AssertionError("the member id did not change")
        described = self.admin.describe_consumer_groups(["rd.static"])["rd.static"].result(30)
        equal([m.group_instance_id for m in described.members], ["one"])
        second.close()

    def joined(self, consumer: Consumer) -> str:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            consumer.poll(0.2)
            if consumer.assignment():
                return consumer.memberid()
        raise AssertionError("the member got no partitions")

    def cooperative(self) -> None:
        self.create("rd.coop", 4)
        config = {"partition.assignment.strategy": "cooperative-sticky"}
        first, second = self.consumer("rd.coop", **config), self.consumer("rd.coop", **config)
        revoked = []
        first.subscribe(["rd.coop"], on_revoke=lambda _, gone: revoked.extend(gone))
        self.joined(first)
        equal(len(first.assignment()), 4)
        second.subscribe(["rd.coop"])
        end = time.monotonic() + 30
        while time.monotonic() < end and (len(first.assignment()), len(second.assignment())) != (2, 2):
            first.poll(0.1)
            second.poll(0.1)
        equal((len(first.assignment()), len(second.assignment())), (2, 2))
        equal(len(revoked), 2)
        first.close()
        second.close()

    def transaction(self) -> None:
        self.create("rd.txn")
        producer = self.producer(**{"transactional.id": "rd.txn"})
        producer.init_transactions(30)
        for kept in (True, False, True):
            producer.begin_transaction()
            producer.produce("rd.txn", str(kept))
            producer.commit_transaction(30) if kept else producer.abort_transaction(30)
        consumer = self.consumer("rd.txn", **{"isolation.level": "read_committed"})
        consumer.assign([TopicPartition("rd.txn", 0, 0)])
        equal([m.value() for m in self.take(consumer, 2)], [b"True", b"True"])
        consumer.close()

    def offsets(self) -> None:
        wanted = {TopicPartition("rd.group", p): OffsetSpec.latest() for p in range(3)}
        got = {tp.partition: f.result(30).offset for tp, f in self.admin.list_offsets(wanted).items()}
        equal(got, {0: 10, 1: 11, 2: 10})


def smoke(brokers: str) -> None:
    checks, s = Checks(), Smoke(brokers)
    checks.run("admin", s.admin_topics)
    for codec in CODECS:
        checks.run(f"codec {codec}", s.codec(codec))
    checks.run("headers", s.headers)
    checks.run("seek by time", s.seek_by_time)
    checks.run("group commit", s.group_commit)
    checks.run("list offsets", s.offsets)
    checks.run("static member", s.static_member)
    checks.run("cooperative rebalance", s.cooperative)
    checks.run("transaction", s.transaction)
    checks.finish()
