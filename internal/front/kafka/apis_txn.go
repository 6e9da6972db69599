package kafka

import (
	"github.com/daybook-mq/daybook/internal/front/kafka/codes"
	"github.com/daybook-mq/daybook/internal/front/kafka/conn"
)

// txnAPIs are the rows of idempotent and transactional producers.
func (s *Server) txnAPIs() []conn.API {
	if s.opts.Txns == nil {
		return nil
	}
	rows := []conn.API{
		conn.Handle(0, 5, s.initProducerID),
		conn.Handle(0, 5, s.addPartitionsToTxn),
		conn.Handle(0, 5, s.endTxn),
		conn.Handle(1, 2, s.writeTxnMarkers),
		conn.Handle(0, 0, s.describeProducers),
		conn.Handle(0, 0, s.describeTransactions),
		conn.Handle(0, 2, s.listTransactions),
	}
	if s.opts.Groups != nil {
		rows = append(rows, conn.Handle(0, 4, s.addOffsetsToTxn), conn.Start(0, 6, s.txnOffsetCommit))
	}
	return rows
}

// txnFeatures are the feature levels that transactions earn.
func (s *Server) txnFeatures() []feature {
	if s.opts.Txns == nil || s.opts.Groups == nil {
		return nil
	}
	return []feature{{"transaction.version", 0, 2, 2}}
}

// producerCode is the code of err for a producer: versions below since know
// INVALID_PRODUCER_EPOCH where later ones know PRODUCER_FENCED (KIP-588).
func producerCode(r *conn.Request, err error, since int16) codes.Code {
	code := codes.For(r.Key, err)
	if code == codes.ProducerFenced && r.Version < since {
		return codes.InvalidProducerEpoch
	}
	return code
}
