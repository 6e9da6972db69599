package consume

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/daybook-mq/daybook/internal/cli"
)

// shareIdle is how long a share group may bring nothing before a command that
// does not follow takes that for the end: a share group has no end to read to.
const shareIdle = 3 * time.Second

// share reads as a member of a share group (KIP-932): a record is accepted once
// it is printed and flushed; one that is fetched but not printed is released.
func (p *plan) share(ctx context.Context, g *cli.Globals) error {
	if err := p.topicsExist(ctx, g); err != nil {
		return err
	}
	link := cli.NewLink(g)
	opts := append(p.clientOptions(link), kgo.ShareGroup(p.Share), kgo.ConsumeTopics(p.Topics...))
	conn, err := g.Connect(ctx, opts...)
	if err != nil {
		return err
	}
	out := p.output(g)
	err = p.shareLoop(ctx, g, conn, link, out)
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveGrace)
	defer cancel()
	if ackErr := conn.FlushAcks(leave); err == nil && ackErr != nil {
		err = cli.Failed("accept records in group "+p.Share, ackErr)
	}
	_ = conn.LeaveGroupContext(leave) // the broker notices by itself a little later
	conn.Close()
	return err
}

func (p *plan) topicsExist(ctx context.Context, g *cli.Globals) error {
	conn, err := g.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := g.Limit(ctx)
	defer cancel()
	_, err = conn.Topics(ctx, p.Topics...)
	return err
}

func (p *plan) shareLoop(ctx context.Context, g *cli.Globals, conn *cli.Conn, link *cli.Link, out *output) error {
	last := time.Now()
	for {
		poll, cancel := context.WithTimeout(ctx, idleCheck)
		fetches := conn.PollFetches(poll)
		cancel()
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := fetchError(fetches); err != nil {
			return err
		}
		var printed, left []*kgo.Record
		for it := fetches.RecordIter(); !it.Done(); {
			rec := it.Next()
			if out.full() {
				left = append(left, rec)
				continue
			}
			if err := out.write(rec); err != nil {
				return err
			}
			printed = append(printed, rec)
		}
		if err := out.w.Flush(); err != nil {
			conn.MarkAcks(kgo.AckRelease, printed...)
			return err
		}
		if len(printed) > 0 {
			conn.MarkAcks(kgo.AckAccept, printed...)
			last = time.Now()
		}
		if len(left) > 0 {
			conn.MarkAcks(kgo.AckRelease, left...)
		}
		if out.full() {
			return nil
		}
		if err := giveUp(g, link); err != nil && p.bounded {
			return err
		}
		if p.bounded && time.Since(last) > shareIdle {
			return nil
		}
	}
}
