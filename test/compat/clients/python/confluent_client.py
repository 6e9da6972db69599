"""librdkafka through confluent-kafka. The contract is in ../README.md."""

import signal
import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer


# A commit that crosses a rebalance is refused; the records stay this member's, and its next
# commit covers them.
REBALANCING = (KafkaError.ILLEGAL_GENERATION, KafkaError.REBALANCE_IN_PROGRESS)


def produce(brokers: str, topic: str, path: str) -> None:
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": brokers,
            "acks": "all",
            "compression.type": "zstd",
            "partitioner": "murmur2_random",
            "linger.ms": 20,
            "queue.buffering.max.messages": 500_000,
            # Each failure ends the run; a success costs no callback.
            "delivery.report.only.error": True,
        }
    )
    with open(path, "rb") as lines:
        for line in lines:
            key, value = line.rstrip(b"\n").split(b"\t", 1)
            while True:
                try:
                    producer.produce(topic, value, key, on_delivery=lambda error, _: failures.append(error))
                    break
                except BufferError:
                    producer.poll(0.1)
    left = producer.flush(120)
    if left or failures:
        sys.exit(f"{left} records not acknowledged, {len(failures)} failed: {failures[:3]}")


def consume(brokers: str, group: str, out_path: str, topics: list[str]) -> None:
    stopping = False

    def stop(*_):
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 10000,
            "heartbeat.interval.ms": 1000,
            "partition.assignment.strategy": "cooperative-sticky",
        }
    )
    out = open(out_path, "ab", buffering=1 << 20)
    written = 0
    committed = 0

    def commit():
        nonlocal committed
        if committed == written:
            return
        out.flush()
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].code() in REBALANCING:
                return
            raise
        committed = written
        print(f"committed {committed}", flush=True)

    consumer.subscribe(topics, on_revoke=lambda *_: commit())
    while not stopping:
        for message in consumer.consume(5000, timeout=0.2):
            if message.error():
                if message.error().code() == KafkaError._PARTITION_EOF:
                    continue
                sys.exit(str(message.error()))
            out.write(
                b"%s\t%d\t%d\t%s\t%s\n"
                % (message.topic().encode(), message.partition(), message.offset(), message.key(), message.value())
            )
            written += 1
        commit()
    consumer.close()


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    if verb == "produce":
        produce(*rest)
    elif verb == "consume":
        consume(rest[0], rest[1], rest[2], rest[3:])
    elif verb == "smoke":
        from confluent_smoke import smoke

        smoke(rest[0])
    else:
        sys.exit(f"unknown verb {verb}")
