// kafkajs. The contract is in ../README.md.
const fs = require('fs')
const readline = require('readline')
const { Kafka, CompressionTypes, Partitioners, logLevel } = require('kafkajs')
require('./codecs').register()

function connect(brokers) {
  return new Kafka({ clientId: 'compat', brokers: brokers.split(','), logLevel: logLevel.NOTHING })
}

async function produce(brokers, topic, path) {
  const producer = connect(brokers).producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  let messages = []
  const send = async () => {
    if (messages.length === 0) return
    const batch = messages
    messages = []
    await producer.send({ topic, messages: batch, acks: -1, compression: CompressionTypes.GZIP })
  }
  for await (const line of readline.createInterface({ input: fs.createReadStream(path) })) {
    const tab = line.indexOf('\t')
    messages.push({ key: line.slice(0, tab), value: line.slice(tab + 1) })
    if (messages.length === 20000) await send()
  }
  await send()
  await producer.disconnect()
}

async function consume(brokers, group, outPath, topics) {
  const consumer = connect(brokers).consumer({
    groupId: group,
    sessionTimeout: 10000,
    heartbeatInterval: 1000,
  })
  const out = fs.openSync(outPath, 'a')
  let written = 0
  await consumer.connect()
  await consumer.subscribe({ topics, fromBeginning: true })
  await consumer.run({
    autoCommit: false,
    eachBatchAutoResolve: false,
    eachBatch: async ({ batch, resolveOffset, heartbeat, isRunning, isStale }) => {
      if (!isRunning() || isStale() || batch.messages.length === 0) return
      const lines = []
      for (const m of batch.messages) {
        lines.push(`${batch.topic}\t${batch.partition}\t${m.offset}\t${m.key}\t${m.value}\n`)
      }
      fs.writeSync(out, lines.join(''))
      written += lines.length
      const last = batch.lastOffset()
      resolveOffset(last)
      const offset = (BigInt(last) + 1n).toString()
      await consumer.commitOffsets([{ topic: batch.topic, partition: batch.partition, offset }])
      console.log(`committed ${written}`)
      await heartbeat()
    },
  })
  process.on('SIGTERM', async () => {
    await consumer.disconnect()
    process.exit(0)
  })
}

async function main([verb, ...rest]) {
  switch (verb) {
    case 'produce':
      return produce(...rest)
    case 'consume':
      return consume(rest[0], rest[1], rest[2], rest.slice(3))
    case 'smoke':
      return require('./kafkajs_smoke').smoke(connect, rest[0])
    default:
      throw new Error(`unknown verb ${verb}`)
  }
}

main(process.argv.slice(2)).catch((error) => {
  console.error(error)
  process.exit(1)
})
