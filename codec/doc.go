// Package codec turns bytes into AMQP 1.0 values and back.
package codec
