package main

import (
	"context"
	"errors"
)

type serveCommand struct {
	nodeConfig
	LogLevel string `enum:"debug,info,warn,error" default:"info" help:"Least level that is logged: ${enum}."`
}

// Run is called by the command line.
func (s *serveCommand) Run(ctx context.Context, c *console) error {
	log := newLogger(c, s.LogLevel)
	n, err := startNode(ctx, s.nodeConfig, log)
	if err != nil {
		return err
	}
	n.otherJobs.start(keepHeadroom)
	log.Info("Serving.", "http", n.httpURL(), "mqtt", n.mqttURL(), "instance", n.instance(), "redis", s.RedisURL != "")
	select {
	case <-ctx.Done():
		log.Info("Stopping: no more events are taken, those in hand are finished.")
	case err = <-n.failed:
	}
	return errors.Join(err, n.stop(ctx))
}

// mqttURL is where cabinets connect.
func (n *node) mqttURL() string {
	if n.broker == nil {
		return n.config.MQTTURL
	}
	if n.config.MQTTTLSCert != "" {
		return "mqtts://" + dialable(n.broker.Addr())
	}
	return "tcp://" + dialable(n.broker.Addr())
}
