package partition

import (
	"cmp"
	"slices"

	"github.com/daybook-mq/daybook/internal/model"
	"github.com/daybook-mq/daybook/internal/storage/partlog"
)

// debugProducers bounds how many producers are shown: those seen last.
const debugProducers = 100

// Debug is the state of the machine, for the debug pages.
type Debug struct {
	Watermarks
	Next      model.Offset // of the next batch; above the high watermark while some is not durable
	Waiters   int
	Producers int // known; Newest shows some
	Newest    []ProducerDebug
	OpenTxns  []TxnDebug
	Endings   int // transactions whose marker is not durable yet
	Aborted   int // entries of the aborted index
	Log       partlog.Debug
}

// ProducerDebug is what is known of one producer.
type ProducerDebug struct {
	ID           int64
	Epoch        int16
	LastSequence int32
	TxnFirst     model.Offset // -1: no open transaction here
	SeenMillis   int64
}

// TxnDebug is a transaction with data here and no marker yet.
type TxnDebug struct {
	ProducerID int64
	First      model.Offset
}

// Debug shows the partition.
func (p *Partition) Debug() Debug {
	d := Debug{Log: p.log.Debug()}
	p.mu.Lock()
	defer p.mu.Unlock()
	d.Watermarks, d.Next, d.Waiters = p.watermarksLocked(), p.next, len(p.waiters)
	for id, pr := range p.state.producers {
		d.Newest = append(d.Newest, ProducerDebug{id, pr.epoch, pr.lastSeq(), pr.txnFirst, pr.seen})
	}
	d.Producers = len(d.Newest)
	slices.SortFunc(d.Newest, func(a, b ProducerDebug) int { return -cmp.Compare(a.SeenMillis, b.SeenMillis) })
	d.Newest = d.Newest[:min(len(d.Newest), debugProducers)]
	for _, t := range p.state.txns.open {
		d.OpenTxns = append(d.OpenTxns, TxnDebug{t.producerID, t.first})
	}
	d.Endings, d.Aborted = len(p.state.txns.endings), len(p.state.txns.aborted)
	return d
}
