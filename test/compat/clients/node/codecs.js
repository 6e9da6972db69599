// The codecs that kafkajs leaves to others: kafkajs-snappy as it is, and adapters for lz4
// and zstd. Nothing is compiled at install.
const { CompressionCodecs, CompressionTypes } = require('kafkajs')
const snappy = require('kafkajs-snappy')
const lz4 = require('lz4-napi')
const { ZstdCodec } = require('zstd-codec')

const zstd = new Promise((resolve) => ZstdCodec.run((lib) => resolve(new lib.Streaming())))

function register() {
  CompressionCodecs[CompressionTypes.Snappy] = snappy
  CompressionCodecs[CompressionTypes.LZ4] = () => ({
    compress: (encoder) => lz4.compressFrame(encoder.buffer),
    decompress: (buffer) => lz4.decompressFrame(buffer),
  })
  CompressionCodecs[CompressionTypes.ZSTD] = () => ({
    compress: async (encoder) => Buffer.from((await zstd).compress(encoder.buffer, 3)),
    decompress: async (buffer) => Buffer.from((await zstd).decompress(buffer)),
  })
}

module.exports = { register }
