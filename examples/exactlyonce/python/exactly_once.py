"""Reads orders, writes a charge for each, and commits the position, in one transaction.

pip install confluent-kafka
python exactly_once.py [broker] [orders to process]
"""

import sys

from confluent_kafka import Consumer, KafkaException, Producer

broker = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"
wanted = int(sys.argv[2]) if len(sys.argv) > 2 else 100

consumer = Consumer({
    "bootstrap.servers": broker,
    "group.id": "exactly-once-python",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "isolation.level": "read_committed",
})
producer = Producer({"bootstrap.servers": broker, "transactional.id": "charger-python-1"})

producer.init_transactions()
consumer.subscribe(["orders"])
done = 0
try:
    while done < wanted:
        messages = [m for m in consumer.consume(min(500, wanted - done), timeout=1.0)]
        for m in messages:
            if m.error():
                raise KafkaException(m.error())
        if not messages:
            continue
        producer.begin_transaction()
        for m in messages:
            producer.produce("charges", key=m.key(), value=b"charged " + m.value())
        # The position is committed with the charges, or neither is.
        producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata())
        producer.commit_transaction()
        done += len(messages)
        print(f"{done} orders charged", flush=True)
finally:
    consumer.close()
