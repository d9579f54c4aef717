-- +goose NO TRANSACTION
-- +goose Up

-- Who changed what, append-only, in the transaction of the change.
CREATE TABLE IF NOT EXISTS audit_log (
  entry_id BIGINT NOT NULL PRIMARY KEY,
  actor VARCHAR(64) NOT NULL,
  action VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  target VARCHAR(128) NOT NULL,
  before_change MEDIUMBLOB NULL,
  after_change MEDIUMBLOB NULL,
  created_at DATETIME(3) NOT NULL,
  KEY audit_log_target (target, entry_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- open_device and open_user are set while the session is open, so that their keys let a cabinet and a shopper have one.
-- app is the name of the app's token, '' where staff opened; settled_event_id the event that closed the session.
CREATE TABLE IF NOT EXISTS door_sessions (
  session_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  device_id BIGINT NOT NULL,
  close_event_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  user_id BIGINT NOT NULL,
  kind VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  app VARCHAR(200) NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  open_device BIGINT NULL,
  open_user BIGINT NULL,
  settled_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NULL,
  created_at DATETIME(3) NOT NULL,
  opened_at DATETIME(3) NULL,
  ended_at DATETIME(3) NULL,
  expires_at DATETIME(3) NOT NULL,
  UNIQUE KEY door_sessions_event (device_id, close_event_id),
  UNIQUE KEY door_sessions_open_device (open_device),
  UNIQUE KEY door_sessions_open_user (open_user),
  KEY door_sessions_overdue (state, expires_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Where the books have a tag: in one cabinet, sold in one order, or lost.
CREATE TABLE IF NOT EXISTS epcs (
  epc VARCHAR(124) NOT NULL PRIMARY KEY,
  product_id BIGINT NOT NULL,
  state VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  device_id BIGINT NOT NULL,
  close_event_id VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  order_id BIGINT NULL,
  version BIGINT NOT NULL,
  updated_at DATETIME(3) NOT NULL,
  KEY epcs_device (device_id, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS epc_overrides (
  epc VARCHAR(124) NOT NULL PRIMARY KEY,
  product_id BIGINT NOT NULL,
  updated_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS planogram_history (
  device_id BIGINT NOT NULL,
  changed_at DATETIME(3) NOT NULL,
  lanes MEDIUMBLOB NOT NULL,
  actor VARCHAR(64) NOT NULL,
  PRIMARY KEY (device_id, changed_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What lies in lanes that it doesn't belong to, as the last door left it.
CREATE TABLE IF NOT EXISTS cabinet_strays (
  device_id BIGINT NOT NULL PRIMARY KEY,
  strays BLOB NOT NULL,
  version BIGINT NOT NULL,
  updated_at DATETIME(3) NOT NULL
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Stock-takes and write-offs, the documents behind movements, as restocks are.
CREATE TABLE IF NOT EXISTS stocktakes (
  device_id BIGINT NOT NULL,
  stocktake_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  as_of_seq BIGINT NULL,
  seq_epoch INT NOT NULL,
  actor VARCHAR(64) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, stocktake_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE IF NOT EXISTS writeoffs (
  device_id BIGINT NOT NULL,
  writeoff_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  reason VARCHAR(500) NOT NULL,
  actor VARCHAR(64) NOT NULL,
  created_at DATETIME(3) NOT NULL,
  PRIMARY KEY (device_id, writeoff_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE IF EXISTS writeoffs;
DROP TABLE IF EXISTS stocktakes;
DROP TABLE IF EXISTS cabinet_strays;
DROP TABLE IF EXISTS planogram_history;
DROP TABLE IF EXISTS epc_overrides;
DROP TABLE IF EXISTS epcs;
DROP TABLE IF EXISTS door_sessions;
DROP TABLE IF EXISTS audit_log;
