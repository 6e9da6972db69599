module github.com/daybook-mq/daybook

go 1.26
