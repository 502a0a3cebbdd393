BEGIN TRANSACTION;
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num));
INSERT INTO "alembic_version" VALUES('0006');
CREATE TABLE alerts (
	id INTEGER NOT NULL, 
	subject TEXT NOT NULL, 
	severity TEXT NOT NULL, 
	source_id INTEGER, 
	message TEXT NOT NULL, 
	opened_at BIGINT NOT NULL, 
	closed_at BIGINT, 
	CONSTRAINT pk_alerts PRIMARY KEY (id), 
	CONSTRAINT fk_alerts_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "alerts" VALUES(1,'source 1 failing','P1',1,'so it is',1,NULL);
CREATE TABLE aliases (
	platform TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	item_id INTEGER NOT NULL, 
	noticed_at BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	CONSTRAINT pk_aliases PRIMARY KEY (platform, scope, external_id), 
	CONSTRAINT fk_aliases_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
INSERT INTO "aliases" VALUES('feeds','8fc46aa470da1befd976','new -6',1,1767225720000000,'ids changed');
INSERT INTO "aliases" VALUES('feeds','8fc46aa470da1befd976','new -5',2,1767225720000000,'ids changed');
INSERT INTO "aliases" VALUES('feeds','8fc46aa470da1befd976','new -4',3,1767225720000000,'ids changed');
INSERT INTO "aliases" VALUES('feeds','8fc46aa470da1befd976','new -3',4,1767225720000000,'ids changed');
INSERT INTO "aliases" VALUES('feeds','8fc46aa470da1befd976','new -2',5,1767225720000000,'ids changed');
CREATE TABLE api_keys (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	key_hash BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT, 
	CONSTRAINT pk_api_keys PRIMARY KEY (id), 
	CONSTRAINT uq_api_keys_name UNIQUE (name), 
	CONSTRAINT uq_api_keys_key_hash UNIQUE (key_hash)
);
INSERT INTO "api_keys" VALUES(1,'n8n',X'2BB80D537B1DA3E38BD30361AA855686BDE0EACD7162FEF6A25FE97BF527A25B',1767225600000000,NULL);
CREATE TABLE appearances (
	item_id BIGINT NOT NULL, 
	day TEXT NOT NULL, 
	source_id BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	rank INTEGER, 
	score BIGINT, 
	gained BIGINT, 
	CONSTRAINT pk_appearances PRIMARY KEY (item_id, day, source_id)
)
 WITHOUT ROWID

;
INSERT INTO "appearances" VALUES(14,'2026-01-01',2,1767226140000000,1,12,3);
CREATE TABLE attempts (
	minute BIGINT NOT NULL, 
	platform TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	count INTEGER NOT NULL, 
	CONSTRAINT pk_attempts PRIMARY KEY (minute, platform, outcome)
)
 WITHOUT ROWID

;
INSERT INTO "attempts" VALUES(1767225660000000,'feeds','200',1);
INSERT INTO "attempts" VALUES(1767225720000000,'feeds','200',1);
INSERT INTO "attempts" VALUES(1767225780000000,'feeds','200',1);
INSERT INTO "attempts" VALUES(1767225840000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767225900000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767225960000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226020000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226080000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226140000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226200000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226260000000,'reddit','200',1);
INSERT INTO "attempts" VALUES(1767226320000000,'feeds','200',1);
CREATE TABLE budgets (
	name TEXT NOT NULL, 
	blocks TEXT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_budgets PRIMARY KEY (name)
);
INSERT INTO "budgets" VALUES('reddit','[[1,2]]',1767225600000000);
CREATE TABLE counter_points (
	item_id BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	score BIGINT, 
	reply_count BIGINT, 
	view_count BIGINT, 
	CONSTRAINT pk_counter_points PRIMARY KEY (item_id, at)
)
 WITHOUT ROWID

;
INSERT INTO "counter_points" VALUES(1,1767225660000000,-6,NULL,NULL);
INSERT INTO "counter_points" VALUES(2,1767225660000000,-5,NULL,NULL);
INSERT INTO "counter_points" VALUES(3,1767225660000000,-4,NULL,NULL);
INSERT INTO "counter_points" VALUES(4,1767225660000000,-3,NULL,NULL);
INSERT INTO "counter_points" VALUES(5,1767225660000000,-2,NULL,NULL);
INSERT INTO "counter_points" VALUES(14,1767226140000000,12,NULL,NULL);
CREATE TABLE crawl_metrics (
	span TEXT NOT NULL, 
	starts_at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	source_count INTEGER NOT NULL, 
	succeeded INTEGER NOT NULL, 
	empty INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	put_off INTEGER NOT NULL, 
	skipped INTEGER NOT NULL, 
	visit_seconds FLOAT NOT NULL, 
	new_count INTEGER NOT NULL, 
	valid_count INTEGER NOT NULL, 
	updated_count INTEGER NOT NULL, 
	duplicate_count INTEGER NOT NULL, 
	invalid_count INTEGER NOT NULL, 
	request_count INTEGER NOT NULL, 
	measured_at BIGINT NOT NULL, 
	CONSTRAINT pk_crawl_metrics PRIMARY KEY (span, starts_at, kind)
)
 WITHOUT ROWID

;
INSERT INTO "crawl_metrics" VALUES('hour',1767225600000000,'rss','feeds',0,3,0,0,0,0,0.0,0,0,0,0,0,0,1767225600000000);
CREATE TABLE credential_changes (
	id INTEGER NOT NULL, 
	platform TEXT NOT NULL, 
	credential TEXT NOT NULL, 
	changed_at BIGINT NOT NULL, 
	from_state TEXT, 
	to_state TEXT, 
	reason TEXT NOT NULL, 
	CONSTRAINT pk_credential_changes PRIMARY KEY (id)
);
INSERT INTO "credential_changes" VALUES(1,'feeds','somebody',1767225600000000,NULL,'active','added');
CREATE TABLE credentials (
	id INTEGER NOT NULL, 
	platform TEXT NOT NULL, 
	name TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	state TEXT NOT NULL, 
	priority INTEGER NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT, 
	is_from_environment BOOLEAN DEFAULT 0 NOT NULL, 
	is_shared BOOLEAN DEFAULT 0 NOT NULL, 
	state_since BIGINT, 
	state_until BIGINT, 
	state_reason TEXT, 
	errors_in_a_row INTEGER DEFAULT '0' NOT NULL, 
	errors_in_all INTEGER DEFAULT '0' NOT NULL, 
	falls_in_a_row INTEGER DEFAULT '0' NOT NULL, 
	last_error_at BIGINT, 
	last_error TEXT, 
	daily_limit INTEGER, 
	used_on TEXT, 
	used_that_day INTEGER DEFAULT '0' NOT NULL, 
	use_count BIGINT DEFAULT '0' NOT NULL, 
	expires_at BIGINT, 
	hosts TEXT DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_credentials PRIMARY KEY (id), 
	CONSTRAINT uq_credentials_name UNIQUE (name)
);
INSERT INTO "credentials" VALUES(1,'feeds','somebody','key',X'7365616C6564','active',0,1767225600000000,NULL,0,0,1767225600000000,NULL,NULL,0,0,0,NULL,NULL,NULL,NULL,0,0,NULL,'[]');
CREATE TABLE deliveries (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	listener TEXT NOT NULL, 
	webhook_id INTEGER, 
	is_active BOOLEAN NOT NULL, 
	off_because TEXT, 
	position BIGINT NOT NULL, 
	next_attempt_at BIGINT, 
	failures_in_a_row INTEGER NOT NULL, 
	failing_since BIGINT, 
	last_error TEXT, 
	last_delivered_at BIGINT, 
	delivered_count BIGINT NOT NULL, 
	given_up_count BIGINT NOT NULL, 
	CONSTRAINT uq_deliveries_listener UNIQUE (listener), 
	CONSTRAINT uq_deliveries_webhook_id UNIQUE (webhook_id), 
	CONSTRAINT fk_deliveries_webhook_id FOREIGN KEY(webhook_id) REFERENCES webhooks (id)
);
INSERT INTO "deliveries" VALUES(1,'webhook mine',1,1,NULL,0,NULL,0,NULL,NULL,NULL,0,0);
CREATE TABLE facets (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	CONSTRAINT pk_facets PRIMARY KEY (id), 
	CONSTRAINT uq_facets_name UNIQUE (name)
);
INSERT INTO "facets" VALUES(1,'is:deleted');
INSERT INTO "facets" VALUES(2,'is:edited');
INSERT INTO "facets" VALUES(3,'kind:entry');
INSERT INTO "facets" VALUES(4,'kind:reddit');
INSERT INTO "facets" VALUES(5,'kind:rss');
INSERT INTO "facets" VALUES(6,'platform:feeds');
INSERT INTO "facets" VALUES(7,'platform:reddit');
INSERT INTO "facets" VALUES(8,'tag:day');
INSERT INTO "facets" VALUES(9,'tag:日');
CREATE TABLE forgotten (
	id INTEGER NOT NULL, 
	what TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	forgotten_at BIGINT NOT NULL, 
	forgotten_by TEXT NOT NULL, 
	reason TEXT, 
	item_count INTEGER NOT NULL, 
	revision_count INTEGER NOT NULL, 
	answer_count INTEGER NOT NULL, 
	event_count INTEGER NOT NULL, 
	is_finished BOOLEAN NOT NULL, 
	CONSTRAINT pk_forgotten PRIMARY KEY (id)
);
INSERT INTO "forgotten" VALUES(1,'author','feeds',1767226320000000,'test','asked for',1,0,0,0,1);
CREATE TABLE forgotten_marks (
	mark BLOB NOT NULL, 
	forgotten_id INTEGER NOT NULL, 
	CONSTRAINT pk_forgotten_marks PRIMARY KEY (mark), 
	CONSTRAINT fk_forgotten_marks_forgotten_id FOREIGN KEY(forgotten_id) REFERENCES forgotten (id)
)
 WITHOUT ROWID

;
INSERT INTO "forgotten_marks" VALUES(X'6148BAD999BDB8E1D59D509E140568C43414B348BAE121F2CDC7E070CCE6CFE2',1);
INSERT INTO "forgotten_marks" VALUES(X'A4B098D93CD2842DFAFA40EAABEFF60CC3D5710427FFBBC23727CFA19E502313',1);
CREATE TABLE gaps (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	is_certain BOOLEAN NOT NULL, 
	from_at BIGINT NOT NULL, 
	to_at BIGINT NOT NULL, 
	from_ids TEXT NOT NULL, 
	cause TEXT NOT NULL, 
	opened_at BIGINT NOT NULL, 
	opened_run_id BIGINT, 
	closed_at BIGINT, 
	closed_run_id BIGINT, 
	closed_because TEXT, 
	CONSTRAINT pk_gaps PRIMARY KEY (id), 
	CONSTRAINT fk_gaps_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "gaps" VALUES(1,1,0,1767052800000000,1767225780000000,'["-2","new -2"]','window',1767225780000000,1,NULL,NULL,NULL);
CREATE TABLE hot_counts (
	minute BIGINT NOT NULL, 
	hit_count BIGINT NOT NULL, 
	miss_count BIGINT NOT NULL, 
	failure_count BIGINT NOT NULL, 
	CONSTRAINT pk_hot_counts PRIMARY KEY (minute)
);
INSERT INTO "hot_counts" VALUES(1767225600000000,2,1,0);
CREATE TABLE hot_sets (
	source_id INTEGER NOT NULL, 
	is_cached_only BOOLEAN NOT NULL, 
	stamp BIGINT NOT NULL, 
	entry_count INTEGER NOT NULL, 
	expires_at BIGINT NOT NULL, 
	entries TEXT NOT NULL, 
	CONSTRAINT pk_hot_sets PRIMARY KEY (source_id, is_cached_only), 
	CONSTRAINT fk_hot_sets_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "hot_sets" VALUES(2,0,2283419709199463182,6,1767312000000000,'{"id":17,"platform":"reddit","external_id":"t3_f","kind":"entry","source_id":2,"author":null,"title":"About t3_f","text":"said","html":null,"url":null,"created_at":"2026-01-01T00:11:00Z","edited_at":null,"score":null,"reply_count":null,"view_count":null,"last_reply_at":"2026-01-01T00:00:00Z","thread_id":null,"floor_number":null,"is_head":false,"is_deleted":false,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":1,"fingerprint":"VtEtKct1WjhiGfHKkgX8fDlbpVot6KkvC7c9HW2MFcM=","first_seen_at":"2026-01-01T00:11:00Z","content_last_changed_at":"2026-01-01T00:11:00Z","author_id":null,"author_display_name":null,"media":[],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":true,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:11:00Z","change_number":10,"content_change_number":10,"rounded":[],"last_seen_at":"2026-01-01T00:11:00Z","references":[]}
{"id":15,"platform":"reddit","external_id":"t3_d","kind":"entry","source_id":2,"author":null,"title":"About t3_d","text":"said","html":null,"url":null,"created_at":"2026-01-01T00:10:00Z","edited_at":null,"score":null,"reply_count":null,"view_count":null,"last_reply_at":"2026-01-01T00:00:00Z","thread_id":"t3_d","floor_number":null,"is_head":true,"is_deleted":false,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":1,"fingerprint":"O0659nJxQSxv/CJ7H2ZalIaEk7KuMXFAPyehJBA9zZE=","first_seen_at":"2026-01-01T00:10:00Z","content_last_changed_at":"2026-01-01T00:10:00Z","author_id":null,"author_display_name":null,"media":[],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":true,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:10:00Z","change_number":9,"content_change_number":9,"rounded":[],"last_seen_at":"2026-01-01T00:10:00Z","references":[]}
{"id":14,"platform":"reddit","external_id":"t3_c","kind":"entry","source_id":2,"author":null,"title":"About t3_c","text":"said","html":null,"url":null,"created_at":"2026-01-01T00:09:00Z","edited_at":null,"score":12,"reply_count":null,"view_count":null,"last_reply_at":null,"thread_id":null,"floor_number":null,"is_head":false,"is_deleted":false,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":1,"fingerprint":"VirDrt6HmdEmwq6AC/kd5lTN//LGDgJBsT6KqArVgzc=","first_seen_at":"2026-01-01T00:09:00Z","content_last_changed_at":"2026-01-01T00:09:00Z","author_id":null,"author_display_name":null,"media":[],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":true,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:09:00Z","change_number":8,"content_change_number":8,"rounded":[],"last_seen_at":"2026-01-01T00:09:00Z","references":[]}
{"id":10,"platform":"reddit","external_id":"t3_b","kind":"entry","source_id":2,"author":null,"title":"About t3_b","text":"edited","html":null,"url":null,"created_at":"2026-01-01T00:04:00Z","edited_at":null,"score":null,"reply_count":null,"view_count":null,"last_reply_at":null,"thread_id":null,"floor_number":null,"is_head":false,"is_deleted":false,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":2,"fingerprint":"rq6l9xoKClM5DfWIUDQ1thF+ncLYNtErNna7unGDlyQ=","first_seen_at":"2026-01-01T00:04:00Z","content_last_changed_at":"2026-01-01T00:05:00Z","author_id":null,"author_display_name":null,"media":[],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":true,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:04:00Z","change_number":4,"content_change_number":4,"rounded":[],"last_seen_at":"2026-01-01T00:05:00Z","references":[{"relation":"replied_to","external_id":"t3_a"}]}
{"id":9,"platform":"reddit","external_id":"t3_a","kind":"entry","source_id":2,"author":null,"title":"About t3_a","text":"said","html":null,"url":null,"created_at":"2026-01-01T00:04:00Z","edited_at":null,"score":null,"reply_count":null,"view_count":null,"last_reply_at":null,"thread_id":null,"floor_number":null,"is_head":false,"is_deleted":true,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":2,"fingerprint":"b+w6q8xNwsxGvu9DPq5kI7qZyckp/P0uxscbagbs1Hg=","first_seen_at":"2026-01-01T00:04:00Z","content_last_changed_at":"2026-01-01T00:05:00Z","author_id":null,"author_display_name":null,"media":[{"url":"https://m.example/1.png"}],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":true,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:04:00Z","change_number":4,"content_change_number":4,"rounded":[],"last_seen_at":"2026-01-01T00:05:00Z","references":[]}
{"id":16,"platform":"reddit","external_id":"t1_e","kind":"entry","source_id":2,"author":null,"title":"About t1_e","text":"said","html":null,"url":null,"created_at":"2026-01-01T00:00:00Z","edited_at":null,"score":null,"reply_count":null,"view_count":null,"last_reply_at":null,"thread_id":"t3_d","floor_number":null,"is_head":false,"is_deleted":false,"deleted_by":null,"is_folded":false,"is_pinned":false,"is_digest":false,"version":1,"fingerprint":"X1eDlKRX0iKWx2BpitRsHYfxvRyb9/FvV2UVTQBWiTo=","first_seen_at":"2026-01-01T00:10:00Z","content_last_changed_at":"2026-01-01T00:10:00Z","author_id":null,"author_display_name":null,"media":[],"tags":[],"scope":"","target_url":null,"is_adult":false,"is_created_at_guessed":false,"is_zone_guessed":false,"is_text_cut":false,"is_brief":false,"language":null,"ordered_at":"2026-01-01T00:00:00Z","change_number":9,"content_change_number":9,"rounded":[],"last_seen_at":"2026-01-01T00:10:00Z","references":[{"relation":"replied_to","external_id":"t3_d"}]}');
CREATE TABLE hot_sources (
	source_id INTEGER NOT NULL, 
	stamp BIGINT, 
	last_warmed_at BIGINT, 
	cached_count INTEGER NOT NULL, 
	CONSTRAINT pk_hot_sources PRIMARY KEY (source_id), 
	CONSTRAINT fk_hot_sources_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "hot_sources" VALUES(2,2283419708991559614,NULL,0);
CREATE TABLE index_mark (
	id INTEGER NOT NULL, 
	rule INTEGER NOT NULL, 
	change_number BIGINT NOT NULL, 
	item_id BIGINT NOT NULL, 
	CONSTRAINT pk_index_mark PRIMARY KEY (id)
);
INSERT INTO "index_mark" VALUES(1,2,10,17);
CREATE TABLE "indexed" (
	place INTEGER NOT NULL, 
	facets TEXT NOT NULL, 
	is_too_long BOOLEAN NOT NULL, 
	words TEXT NOT NULL, 
	CONSTRAINT pk_indexed PRIMARY KEY (place)
);
INSERT INTO "indexed" VALUES(3793974822803865601,'6 3 5 9 8',0,'about 6 第 天');
INSERT INTO "indexed" VALUES(3794160365391052802,'6 3 5 9 8',0,'about 5 第 天');
INSERT INTO "indexed" VALUES(3794345907978240003,'6 3 5 9 8',0,'about 4 第 天');
INSERT INTO "indexed" VALUES(3794531450565427204,'6 3 5 9 8',0,'about 3 第 天');
INSERT INTO "indexed" VALUES(3794716993152614405,'6 3 5 9 8',0,'about 2 第 天');
INSERT INTO "indexed" VALUES(3795088078326988811,'7 3 4',0,'about t3 0 said');
INSERT INTO "indexed" VALUES(3795088078326988812,'7 3 4',0,'about t3 1 said');
INSERT INTO "indexed" VALUES(3795088078326988813,'7 3 4',0,'about t3 2 said');
INSERT INTO "indexed" VALUES(3795088078326988816,'7 3 4',0,'about t1 e said');
INSERT INTO "indexed" VALUES(3795088464874045446,'6 3 5',0,'about late 0 said');
INSERT INTO "indexed" VALUES(3795088464874045447,'6 3 5',0,'about late 1 said');
INSERT INTO "indexed" VALUES(3795088464874045448,'6 3 5',0,'about late 2 said');
INSERT INTO "indexed" VALUES(3795088593723064329,'7 3 4 1 2',0,'about t3 a said');
INSERT INTO "indexed" VALUES(3795088593723064330,'7 3 4 2',0,'about t3 b edited');
INSERT INTO "indexed" VALUES(3795089237968158734,'7 3 4',0,'about t3 c said');
INSERT INTO "indexed" VALUES(3795089366817177615,'7 3 4',0,'about t3 d said');
INSERT INTO "indexed" VALUES(3795089495666196497,'7 3 4',0,'about t3 f said');
CREATE TABLE item_references (
	item_id INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	relation TEXT NOT NULL, 
	external_id TEXT, 
	url TEXT, 
	author TEXT, 
	text TEXT, 
	CONSTRAINT pk_item_references PRIMARY KEY (item_id, position), 
	CONSTRAINT fk_item_references_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
INSERT INTO "item_references" VALUES(10,0,'replied_to','t3_a',NULL,NULL,NULL);
INSERT INTO "item_references" VALUES(16,0,'replied_to','t3_d',NULL,NULL,NULL);
CREATE TABLE item_tags (
	item_id BIGINT NOT NULL, 
	tag_id BIGINT NOT NULL, 
	first_seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_item_tags PRIMARY KEY (item_id, tag_id)
)
 WITHOUT ROWID

;
INSERT INTO "item_tags" VALUES(1,1,1767225660000000);
INSERT INTO "item_tags" VALUES(1,2,1767225660000000);
INSERT INTO "item_tags" VALUES(2,1,1767225660000000);
INSERT INTO "item_tags" VALUES(2,2,1767225660000000);
INSERT INTO "item_tags" VALUES(3,1,1767225660000000);
INSERT INTO "item_tags" VALUES(3,2,1767225660000000);
INSERT INTO "item_tags" VALUES(4,1,1767225660000000);
INSERT INTO "item_tags" VALUES(4,2,1767225660000000);
INSERT INTO "item_tags" VALUES(5,1,1767225660000000);
INSERT INTO "item_tags" VALUES(5,2,1767225660000000);
CREATE TABLE items (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	platform TEXT NOT NULL, 
	external_id TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	author TEXT, 
	title TEXT, 
	url TEXT, 
	created_at BIGINT NOT NULL, 
	edited_at BIGINT, 
	score BIGINT, 
	reply_count BIGINT, 
	view_count BIGINT, 
	last_reply_at BIGINT, 
	thread_id TEXT, 
	floor_number BIGINT, 
	is_head BOOLEAN NOT NULL, 
	is_deleted BOOLEAN NOT NULL, 
	deleted_by TEXT, 
	is_folded BOOLEAN NOT NULL, 
	is_pinned BOOLEAN NOT NULL, 
	is_digest BOOLEAN NOT NULL, 
	version INTEGER NOT NULL, 
	fingerprint BLOB NOT NULL, 
	first_seen_at BIGINT NOT NULL, 
	content_last_changed_at BIGINT NOT NULL, 
	author_id TEXT, 
	author_display_name TEXT, 
	tags TEXT NOT NULL, 
	scope TEXT NOT NULL, 
	target_url TEXT, 
	is_adult BOOLEAN NOT NULL, 
	is_created_at_guessed BOOLEAN NOT NULL, 
	is_zone_guessed BOOLEAN NOT NULL, 
	is_text_cut BOOLEAN NOT NULL, 
	is_brief BOOLEAN NOT NULL, 
	language TEXT, 
	ordered_at BIGINT NOT NULL, 
	change_number BIGINT NOT NULL, 
	content_change_number BIGINT NOT NULL, 
	rounded TEXT NOT NULL, 
	applied_at BIGINT NOT NULL, 
	fingerprint_rule INTEGER NOT NULL, 
	volatile_until BIGINT, 
	volatile_count INTEGER NOT NULL, 
	text TEXT, 
	html TEXT, 
	media TEXT NOT NULL, 
	CONSTRAINT pk_items PRIMARY KEY (id), 
	CONSTRAINT uq_items_platform_scope_external_id UNIQUE (platform, scope, external_id), 
	CONSTRAINT fk_items_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "items" VALUES(1,1,'feeds','-6','entry',NULL,'About -6',NULL,1766707200000000,NULL,-6,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'E504ADDE84E9E516C2797A405CE165438E22C18BD7E8F28ED20F3DF44B596874',1767225660000000,1767225660000000,NULL,NULL,'["日","day"]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1766707200000000,1,1,'[]',1767225660000000,1,NULL,0,'第 -6 天',NULL,'[]');
INSERT INTO "items" VALUES(2,1,'feeds','-5','entry',NULL,'About -5',NULL,1766793600000000,NULL,-5,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'BCB6D7D2E41F6C14BE9EB598E58C80903D5B0DC134115D1176D173820E2E9E8C',1767225660000000,1767225660000000,NULL,NULL,'["日","day"]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1766793600000000,1,1,'[]',1767225660000000,1,NULL,0,'第 -5 天',NULL,'[]');
INSERT INTO "items" VALUES(3,1,'feeds','-4','entry',NULL,'About -4',NULL,1766880000000000,NULL,-4,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'86125E0BF65BD4AE2DBF9756F735B9B78D33328DCB799A77334AE256BE3DBA2C',1767225660000000,1767225660000000,NULL,NULL,'["日","day"]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1766880000000000,1,1,'[]',1767225660000000,1,NULL,0,'第 -4 天',NULL,'[]');
INSERT INTO "items" VALUES(4,1,'feeds','-3','entry',NULL,'About -3',NULL,1766966400000000,NULL,-3,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'F8CD2B716B38DF7522E6D6911580CB963F10FA2610A4ADCC44511B1469B2A5D8',1767225660000000,1767225660000000,NULL,NULL,'["日","day"]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1766966400000000,1,1,'[]',1767225660000000,1,NULL,0,'第 -3 天',NULL,'[]');
INSERT INTO "items" VALUES(5,1,'feeds','-2','entry',NULL,'About -2',NULL,1767052800000000,NULL,-2,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'8686DC3F90E988B42472143BD4D7D008A9C119176E1F8061096EBD9CDE5F51EA',1767225660000000,1767225660000000,NULL,NULL,'["日","day"]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1767052800000000,1,1,'[]',1767225660000000,1,NULL,0,'第 -2 天',NULL,'[]');
INSERT INTO "items" VALUES(6,1,'feeds','late 0','entry',NULL,'About late 0',NULL,1768003200000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'E27D2220F78658C7877A20B699DC5AC28CB58630DE993104C8F3F5E4A2F8F594',1767225780000000,1767225780000000,NULL,NULL,'[]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1767225780000000,2,2,'[]',1767225780000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(7,1,'feeds','late 1','entry',NULL,'About late 1',NULL,1768089600000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'8E3F1B93F51DCFBD00D0799C4E3605B21C4A5F3BBD241FB72534EB177B75AFCA',1767225780000000,1767225780000000,NULL,NULL,'[]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1767225780000000,2,2,'[]',1767225780000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(8,1,'feeds','late 2','entry',NULL,'About late 2',NULL,1768176000000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'629FD4BE88AE6CA265328F501CBA5AD4E7731C7D85987E7C2FE27E09481D33D4',1767225780000000,1767225780000000,NULL,NULL,'[]','8fc46aa470da1befd976',NULL,0,0,0,0,0,NULL,1767225780000000,2,2,'[]',1767225780000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(9,2,'reddit','t3_a','entry',NULL,'About t3_a',NULL,1767225840000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,1,NULL,0,0,0,2,X'6FEC3AABCC4DC2CC46BEEF433EAE6423BA99C9C929FCFD2EC6C71B6A06ECD478',1767225840000000,1767225900000000,NULL,NULL,'[]','',NULL,0,1,0,0,0,NULL,1767225840000000,4,4,'[]',1767225900000000,1,NULL,0,'said',NULL,'[{"url":"https://m.example/1.png"}]');
INSERT INTO "items" VALUES(10,2,'reddit','t3_b','entry',NULL,'About t3_b',NULL,1767225840000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,2,X'AEAEA5F71A0A0A53390DF588503435B6117E9DC2D836D12B3676BBBA71839724',1767225840000000,1767225900000000,NULL,NULL,'[]','',NULL,0,1,0,0,0,NULL,1767225840000000,4,4,'[]',1767225900000000,1,NULL,0,'edited',NULL,'[]');
INSERT INTO "items" VALUES(11,4,'reddit','t3_0','entry',NULL,'About t3_0',NULL,1767225600000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'436343A7C578BDF1C5FB72A1E6FD9404801C4E7C6C3586ACC8F3FA367C56F904',1767225960000000,1767225960000000,NULL,NULL,'[]','',NULL,0,0,0,0,0,NULL,1767225600000000,5,5,'[]',1767225960000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(12,4,'reddit','t3_1','entry',NULL,'About t3_1',NULL,1767225600000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'C36C76A3B5811E137327E2583EDAE131D01BED8B1021B74ED343522ED0B13A1A',1767226020000000,1767226020000000,NULL,NULL,'[]','',NULL,0,0,0,0,0,NULL,1767225600000000,6,6,'[]',1767226020000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(13,4,'reddit','t3_2','entry',NULL,'About t3_2',NULL,1767225600000000,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'A3D7232166B271107E7B88A544B64DA9EA1E4B26E8781354105F310043E933DA',1767226080000000,1767226080000000,NULL,NULL,'[]','',NULL,0,0,0,0,0,NULL,1767225600000000,7,7,'[]',1767226080000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(14,2,'reddit','t3_c','entry',NULL,'About t3_c',NULL,1767226140000000,NULL,12,NULL,NULL,NULL,NULL,NULL,0,0,NULL,0,0,0,1,X'562AC3AEDE8799D126C2AE800BF91DE654CDFFF2C60E0241B13E8AA80AD58337',1767226140000000,1767226140000000,NULL,NULL,'[]','',NULL,0,1,0,0,0,NULL,1767226140000000,8,8,'[]',1767226140000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(15,2,'reddit','t3_d','entry',NULL,'About t3_d',NULL,1767226200000000,NULL,NULL,NULL,NULL,1767225600000000,'t3_d',NULL,1,0,NULL,0,0,0,1,X'3B4EB9F67271412C6FFC227B1F665A94868493B2AE3171403F27A124103DCD91',1767226200000000,1767226200000000,NULL,NULL,'[]','',NULL,0,1,0,0,0,NULL,1767226200000000,9,9,'[]',1767226200000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(16,2,'reddit','t1_e','entry',NULL,'About t1_e',NULL,1767225600000000,NULL,NULL,NULL,NULL,NULL,'t3_d',NULL,0,0,NULL,0,0,0,1,X'5F578394A457D22296C760698AD46C1D87F1BD1C9BF7F16F5765154D0056893A',1767226200000000,1767226200000000,NULL,NULL,'[]','',NULL,0,0,0,0,0,NULL,1767225600000000,9,9,'[]',1767226200000000,1,NULL,0,'said',NULL,'[]');
INSERT INTO "items" VALUES(17,2,'reddit','t3_f','entry',NULL,'About t3_f',NULL,1767226260000000,NULL,NULL,NULL,NULL,1767225600000000,NULL,NULL,0,0,NULL,0,0,0,1,X'56D12D29CB755A386219F1CA9205FC7C395BA55A2DE8A92F0BB73D1D6D8C15C3',1767226260000000,1767226260000000,NULL,NULL,'[]','',NULL,0,1,0,0,0,NULL,1767226260000000,10,10,'[]',1767226260000000,1,NULL,0,'said',NULL,'[]');
CREATE TABLE jobs (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	next_run_at BIGINT NOT NULL, 
	last_started_at BIGINT, 
	last_finished_at BIGINT, 
	last_error TEXT, 
	run_count INTEGER NOT NULL, 
	CONSTRAINT pk_jobs PRIMARY KEY (id), 
	CONSTRAINT uq_jobs_name UNIQUE (name)
);
INSERT INTO "jobs" VALUES(1,'collect-due',1767225600000000,NULL,NULL,NULL,0);
CREATE TABLE leases (
	resource TEXT NOT NULL, 
	resource_id BIGINT NOT NULL, 
	number BIGINT NOT NULL, 
	owner_id BIGINT, 
	taken_at BIGINT NOT NULL, 
	CONSTRAINT pk_leases PRIMARY KEY (resource, resource_id)
)
 WITHOUT ROWID

;
INSERT INTO "leases" VALUES('source',1,3,NULL,1767225780000000);
INSERT INTO "leases" VALUES('source',2,5,NULL,1767226260000000);
INSERT INTO "leases" VALUES('source',3,1,NULL,1767226320000000);
INSERT INTO "leases" VALUES('source',4,3,NULL,1767226080000000);
CREATE TABLE ledger (
	id INTEGER NOT NULL, 
	change_number BIGINT NOT NULL, 
	last_item_id BIGINT NOT NULL, 
	last_event_id BIGINT DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_ledger PRIMARY KEY (id)
);
INSERT INTO "ledger" VALUES(1,11,18,17);
CREATE TABLE looks (
	item_id BIGINT NOT NULL, 
	platform TEXT NOT NULL, 
	source_id BIGINT NOT NULL, 
	next_look_at BIGINT, 
	look_count INTEGER NOT NULL, 
	failure_count INTEGER NOT NULL, 
	gone_since BIGINT, 
	CONSTRAINT pk_looks PRIMARY KEY (item_id)
)
 WITHOUT ROWID

;
INSERT INTO "looks" VALUES(9,'reddit',2,1767229440000000,0,0,NULL);
INSERT INTO "looks" VALUES(10,'reddit',2,1767229440000000,0,0,NULL);
CREATE TABLE outbox (
	id INTEGER NOT NULL, 
	event TEXT NOT NULL, 
	body TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_outbox PRIMARY KEY (id)
);
INSERT INTO "outbox" VALUES(1,'items.collected','{"source_id":1,"run_id":1,"change_number":1,"new":5,"updated":0}',1767225660000000);
INSERT INTO "outbox" VALUES(2,'items.collected','{"source_id":1,"run_id":1,"change_number":2,"new":3,"updated":0}',1767225780000000);
INSERT INTO "outbox" VALUES(3,'items.collected','{"source_id":2,"run_id":1,"change_number":3,"new":2,"updated":0}',1767225840000000);
INSERT INTO "outbox" VALUES(4,'items.collected','{"source_id":2,"run_id":1,"change_number":4,"new":0,"updated":2}',1767225900000000);
INSERT INTO "outbox" VALUES(5,'items.collected','{"source_id":4,"run_id":1,"change_number":5,"new":1,"updated":0}',1767225960000000);
INSERT INTO "outbox" VALUES(6,'items.collected','{"source_id":4,"run_id":1,"change_number":6,"new":1,"updated":0}',1767226020000000);
INSERT INTO "outbox" VALUES(7,'items.collected','{"source_id":4,"run_id":1,"change_number":7,"new":1,"updated":0}',1767226080000000);
INSERT INTO "outbox" VALUES(8,'items.collected','{"source_id":2,"run_id":1,"change_number":8,"new":1,"updated":0}',1767226140000000);
INSERT INTO "outbox" VALUES(9,'items.collected','{"source_id":2,"run_id":1,"change_number":9,"new":2,"updated":0}',1767226200000000);
INSERT INTO "outbox" VALUES(10,'items.collected','{"source_id":2,"run_id":1,"change_number":10,"new":1,"updated":0}',1767226260000000);
INSERT INTO "outbox" VALUES(11,'items.collected','{"source_id":3,"run_id":1,"change_number":11,"new":1,"updated":0}',1767226320000000);
INSERT INTO "outbox" VALUES(12,'watch.matched','{"watch_id":1,"watch":"days","words":["天"],"is_edit":false,"item":{"id":1,"title":"About -6","url":null,"author":null,"source_id":1,"created_at":"2025-12-26T00:00:00+00:00","change_number":1}}',1767226320000000);
INSERT INTO "outbox" VALUES(13,'watch.matched','{"watch_id":1,"watch":"days","words":["天"],"is_edit":false,"item":{"id":2,"title":"About -5","url":null,"author":null,"source_id":1,"created_at":"2025-12-27T00:00:00+00:00","change_number":1}}',1767226320000000);
INSERT INTO "outbox" VALUES(14,'watch.matched','{"watch_id":1,"watch":"days","words":["天"],"is_edit":false,"item":{"id":3,"title":"About -4","url":null,"author":null,"source_id":1,"created_at":"2025-12-28T00:00:00+00:00","change_number":1}}',1767226320000000);
INSERT INTO "outbox" VALUES(15,'watch.matched','{"watch_id":1,"watch":"days","words":["天"],"is_edit":false,"item":{"id":4,"title":"About -3","url":null,"author":null,"source_id":1,"created_at":"2025-12-29T00:00:00+00:00","change_number":1}}',1767226320000000);
INSERT INTO "outbox" VALUES(16,'watch.matched','{"watch_id":1,"watch":"days","words":["天"],"is_edit":false,"item":{"id":5,"title":"About -2","url":null,"author":null,"source_id":1,"created_at":"2025-12-30T00:00:00+00:00","change_number":1}}',1767226320000000);
INSERT INTO "outbox" VALUES(17,'alert.opened','{"alert_id":1,"subject":"source 1 failing","severity":"P1","source_id":1,"message":"so it is"}',1);
CREATE TABLE owed (
	item_id BIGINT NOT NULL, 
	source_id BIGINT NOT NULL, 
	owed_at BIGINT NOT NULL, 
	asked_count INTEGER NOT NULL, 
	requests TEXT NOT NULL, 
	CONSTRAINT pk_owed PRIMARY KEY (item_id, source_id)
)
 WITHOUT ROWID

;
INSERT INTO "owed" VALUES(1,2,1,0,'[{"url":"https://r.example/replies","method":"GET","params":{},"headers":{},"body":null,"step":"list","listing":"","state":{},"timeout_seconds":null,"max_bytes":null,"identity":"none","credential":null,"secret_header":null,"is_keepable":true,"fallback":null,"item_id":null,"about_item":"a"}]');
CREATE TABLE owners (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	machine TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	work TEXT NOT NULL, 
	lock_name TEXT NOT NULL, 
	started_at BIGINT NOT NULL, 
	heartbeat_at BIGINT NOT NULL, 
	CONSTRAINT uq_owners_lock_name UNIQUE (lock_name)
);
INSERT INTO "owners" VALUES(1,'somewhere',1,'test','a lock',1767225660000000,1767225660000000);
CREATE TABLE postings (
	facet_id BIGINT NOT NULL, 
	ordered_at BIGINT NOT NULL, 
	item_id BIGINT NOT NULL, 
	CONSTRAINT pk_postings PRIMARY KEY (facet_id, ordered_at, item_id)
)
 WITHOUT ROWID

;
INSERT INTO "postings" VALUES(1,1767225840000000,9);
INSERT INTO "postings" VALUES(2,1767225840000000,9);
INSERT INTO "postings" VALUES(2,1767225840000000,10);
INSERT INTO "postings" VALUES(3,1766707200000000,1);
INSERT INTO "postings" VALUES(3,1766793600000000,2);
INSERT INTO "postings" VALUES(3,1766880000000000,3);
INSERT INTO "postings" VALUES(3,1766966400000000,4);
INSERT INTO "postings" VALUES(3,1767052800000000,5);
INSERT INTO "postings" VALUES(3,1767225600000000,11);
INSERT INTO "postings" VALUES(3,1767225600000000,12);
INSERT INTO "postings" VALUES(3,1767225600000000,13);
INSERT INTO "postings" VALUES(3,1767225600000000,16);
INSERT INTO "postings" VALUES(3,1767225780000000,6);
INSERT INTO "postings" VALUES(3,1767225780000000,7);
INSERT INTO "postings" VALUES(3,1767225780000000,8);
INSERT INTO "postings" VALUES(3,1767225840000000,9);
INSERT INTO "postings" VALUES(3,1767225840000000,10);
INSERT INTO "postings" VALUES(3,1767226140000000,14);
INSERT INTO "postings" VALUES(3,1767226200000000,15);
INSERT INTO "postings" VALUES(3,1767226260000000,17);
INSERT INTO "postings" VALUES(4,1767225600000000,11);
INSERT INTO "postings" VALUES(4,1767225600000000,12);
INSERT INTO "postings" VALUES(4,1767225600000000,13);
INSERT INTO "postings" VALUES(4,1767225600000000,16);
INSERT INTO "postings" VALUES(4,1767225840000000,9);
INSERT INTO "postings" VALUES(4,1767225840000000,10);
INSERT INTO "postings" VALUES(4,1767226140000000,14);
INSERT INTO "postings" VALUES(4,1767226200000000,15);
INSERT INTO "postings" VALUES(4,1767226260000000,17);
INSERT INTO "postings" VALUES(5,1766707200000000,1);
INSERT INTO "postings" VALUES(5,1766793600000000,2);
INSERT INTO "postings" VALUES(5,1766880000000000,3);
INSERT INTO "postings" VALUES(5,1766966400000000,4);
INSERT INTO "postings" VALUES(5,1767052800000000,5);
INSERT INTO "postings" VALUES(5,1767225780000000,6);
INSERT INTO "postings" VALUES(5,1767225780000000,7);
INSERT INTO "postings" VALUES(5,1767225780000000,8);
INSERT INTO "postings" VALUES(6,1766707200000000,1);
INSERT INTO "postings" VALUES(6,1766793600000000,2);
INSERT INTO "postings" VALUES(6,1766880000000000,3);
INSERT INTO "postings" VALUES(6,1766966400000000,4);
INSERT INTO "postings" VALUES(6,1767052800000000,5);
INSERT INTO "postings" VALUES(6,1767225780000000,6);
INSERT INTO "postings" VALUES(6,1767225780000000,7);
INSERT INTO "postings" VALUES(6,1767225780000000,8);
INSERT INTO "postings" VALUES(7,1767225600000000,11);
INSERT INTO "postings" VALUES(7,1767225600000000,12);
INSERT INTO "postings" VALUES(7,1767225600000000,13);
INSERT INTO "postings" VALUES(7,1767225600000000,16);
INSERT INTO "postings" VALUES(7,1767225840000000,9);
INSERT INTO "postings" VALUES(7,1767225840000000,10);
INSERT INTO "postings" VALUES(7,1767226140000000,14);
INSERT INTO "postings" VALUES(7,1767226200000000,15);
INSERT INTO "postings" VALUES(7,1767226260000000,17);
INSERT INTO "postings" VALUES(8,1766707200000000,1);
INSERT INTO "postings" VALUES(8,1766793600000000,2);
INSERT INTO "postings" VALUES(8,1766880000000000,3);
INSERT INTO "postings" VALUES(8,1766966400000000,4);
INSERT INTO "postings" VALUES(8,1767052800000000,5);
INSERT INTO "postings" VALUES(9,1766707200000000,1);
INSERT INTO "postings" VALUES(9,1766793600000000,2);
INSERT INTO "postings" VALUES(9,1766880000000000,3);
INSERT INTO "postings" VALUES(9,1766966400000000,4);
INSERT INTO "postings" VALUES(9,1767052800000000,5);
CREATE TABLE progress (
	source_id INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	is_active BOOLEAN NOT NULL, 
	next_due_at BIGINT, 
	due_reason TEXT, 
	first_polled_at BIGINT, 
	last_polled_at BIGINT, 
	last_success_at BIGINT, 
	last_new_at BIGINT, 
	expected_by BIGINT, 
	poll_count INTEGER NOT NULL, 
	failure_count INTEGER NOT NULL, 
	failures_in_a_row INTEGER NOT NULL, 
	last_error TEXT, 
	last_error_code TEXT, 
	watermark_at BIGINT, 
	watermark_ids TEXT NOT NULL, 
	newest_shown_at BIGINT, 
	etag TEXT, 
	last_modified TEXT, 
	body_hash BLOB, 
	reader_version INTEGER, 
	shown_marks BLOB, 
	cursor TEXT NOT NULL, 
	moved_to TEXT, 
	moved_count INTEGER NOT NULL, 
	stale_count INTEGER NOT NULL, 
	empty_in_a_row INTEGER NOT NULL, 
	new_share FLOAT, 
	last_shown_count INTEGER, 
	success_count INTEGER DEFAULT '0' NOT NULL, 
	empty_count INTEGER DEFAULT '0' NOT NULL, 
	posts_per_day FLOAT, 
	reach INTEGER, 
	recent_valid TEXT DEFAULT '[]' NOT NULL, 
	average_valid FLOAT, 
	tier TEXT, 
	tier_minutes INTEGER, 
	tier_reason TEXT, 
	next_limit INTEGER, 
	precedence INTEGER DEFAULT '1' NOT NULL, 
	CONSTRAINT pk_progress PRIMARY KEY (source_id), 
	CONSTRAINT fk_progress_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "progress" VALUES(1,'rss',1,1767226680000000,'own interval',1767225660000000,1767225780000000,1767225780000000,1767225780000000,NULL,3,0,0,NULL,NULL,1767225780000000,'["late 0","late 1","late 2"]',1767225780000000,NULL,NULL,NULL,NULL,NULL,'{}',NULL,0,0,0,7.89999999999999924504e-01,NULL,3,1,NULL,3,'[]',NULL,NULL,NULL,NULL,10,1);
INSERT INTO "progress" VALUES(2,'reddit',0,NULL,NULL,1767225840000000,1767226260000000,1767226260000000,1767226260000000,NULL,5,0,0,NULL,NULL,1767226260000000,'["t3_f"]',1767225600000000,NULL,NULL,NULL,NULL,NULL,'{}',NULL,0,0,0,0.8971,NULL,5,1,NULL,NULL,'[]',NULL,NULL,NULL,NULL,10,1);
INSERT INTO "progress" VALUES(3,'rss',1,NULL,NULL,1767226320000000,1767226320000000,1767226320000000,1767226320000000,NULL,1,0,0,NULL,NULL,1767226320000000,'["told in confidence"]',NULL,NULL,NULL,NULL,NULL,NULL,'{}',NULL,0,0,0,1.0,NULL,1,0,NULL,1,'[]',NULL,NULL,NULL,NULL,10,1);
INSERT INTO "progress" VALUES(4,'reddit',1,1767312480000000,'{"code":"tier.interval","params":{"tier":"tier3","span":{"code":"span.hours","params":{"count":"24"}}}}',1767225960000000,1767226080000000,1767226080000000,1767226080000000,NULL,3,0,0,NULL,NULL,1767225600000000,'["t3_0","t3_1","t3_2"]',1767225600000000,NULL,NULL,NULL,NULL,NULL,'{}',NULL,0,0,0,1.0,NULL,3,0,NULL,NULL,'[1,1,1]',1.0,'tier3',1440,'{"code":"tier.interval","params":{"tier":"tier3","span":{"code":"span.hours","params":{"count":"24"}}}}',10,1);
CREATE TABLE raw_answers (
	id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	run_id BIGINT, 
	answered_at BIGINT NOT NULL, 
	step TEXT NOT NULL, 
	request TEXT NOT NULL, 
	url TEXT NOT NULL, 
	http_status INTEGER NOT NULL, 
	headers TEXT NOT NULL, 
	reader_version INTEGER NOT NULL, 
	is_read BOOLEAN NOT NULL, 
	body_hash BLOB NOT NULL, 
	body BLOB NOT NULL, 
	CONSTRAINT pk_raw_answers PRIMARY KEY (id), 
	CONSTRAINT fk_raw_answers_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "raw_answers" VALUES(1,1,1,1767225660000000,'list','{}','https://one.example/',200,'{}',1,1,X'3C7273732F3E',X'3C7273732F3E');
CREATE TABLE replied (
	list TEXT NOT NULL, 
	last_reply_at BIGINT NOT NULL, 
	item_id BIGINT NOT NULL, 
	CONSTRAINT pk_replied PRIMARY KEY (list, last_reply_at, item_id)
)
 WITHOUT ROWID

;
INSERT INTO "replied" VALUES('all',1767225600000000,15);
INSERT INTO "replied" VALUES('kind:entry',1767225600000000,15);
INSERT INTO "replied" VALUES('kind:reddit',1767225600000000,15);
INSERT INTO "replied" VALUES('platform:reddit',1767225600000000,15);
INSERT INTO "replied" VALUES('source:2',1767225600000000,15);
INSERT INTO "replied" VALUES('all',1767225600000000,17);
INSERT INTO "replied" VALUES('kind:entry',1767225600000000,17);
INSERT INTO "replied" VALUES('kind:reddit',1767225600000000,17);
INSERT INTO "replied" VALUES('platform:reddit',1767225600000000,17);
INSERT INTO "replied" VALUES('source:2',1767225600000000,17);
CREATE TABLE revisions (
	id INTEGER NOT NULL, 
	item_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	valid_from BIGINT NOT NULL, 
	valid_to BIGINT NOT NULL, 
	source_edited_at BIGINT, 
	reasons TEXT NOT NULL, 
	run_id BIGINT, 
	title TEXT, 
	is_deleted BOOLEAN NOT NULL, 
	is_folded BOOLEAN NOT NULL, 
	fingerprint BLOB NOT NULL, 
	target_url TEXT, 
	text TEXT, 
	html TEXT, 
	media TEXT NOT NULL, 
	CONSTRAINT pk_revisions PRIMARY KEY (id), 
	CONSTRAINT uq_revisions_item_id_version UNIQUE (item_id, version), 
	CONSTRAINT fk_revisions_item_id FOREIGN KEY(item_id) REFERENCES items (id)
);
INSERT INTO "revisions" VALUES(1,9,1,1767225840000000,1767225900000000,NULL,'marked_deleted_by_source',1,'About t3_a',0,0,X'6FEC3AABCC4DC2CC46BEEF433EAE6423BA99C9C929FCFD2EC6C71B6A06ECD478',NULL,'said',NULL,'[{"url":"https://m.example/1.png"}]');
INSERT INTO "revisions" VALUES(2,10,1,1767225840000000,1767225900000000,NULL,'content_fingerprint_changed',1,'About t3_b',0,0,X'44C5BEBDB8708DB04C6A429ECC8734AD62FC36E23BF276DC8A6DE2AEF4EF8794',NULL,'said',NULL,'[]');
CREATE TABLE run_sources (
	run_id INTEGER NOT NULL, 
	source_id INTEGER NOT NULL, 
	started_at BIGINT NOT NULL, 
	finished_at BIGINT, 
	outcome TEXT, 
	new_count INTEGER NOT NULL, 
	updated_count INTEGER NOT NULL, 
	duplicate_count INTEGER NOT NULL, 
	invalid_count INTEGER NOT NULL, 
	request_count INTEGER NOT NULL, 
	http_status INTEGER, 
	error_code TEXT, 
	error TEXT, 
	is_retryable BOOLEAN, 
	watermark_before BIGINT, 
	watermark_after BIGINT, 
	notes TEXT NOT NULL, 
	valid_count INTEGER DEFAULT '0' NOT NULL, 
	CONSTRAINT pk_run_sources PRIMARY KEY (run_id, source_id), 
	CONSTRAINT fk_run_sources_run_id FOREIGN KEY(run_id) REFERENCES runs (id), 
	CONSTRAINT fk_run_sources_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
)
 WITHOUT ROWID

;
INSERT INTO "run_sources" VALUES(1,1,1767225780000000,1767225780000000,'succeeded',3,0,0,0,1,200,NULL,NULL,NULL,NULL,1767225780000000,'[]',3);
INSERT INTO "run_sources" VALUES(1,2,1767226260000000,1767226260000000,'succeeded',1,0,0,0,1,200,NULL,NULL,NULL,NULL,1767226260000000,'[]',1);
INSERT INTO "run_sources" VALUES(1,3,1767226320000000,1767226320000000,'succeeded',1,0,0,0,1,200,NULL,NULL,NULL,NULL,1767226320000000,'[]',1);
INSERT INTO "run_sources" VALUES(1,4,1767226080000000,1767226080000000,'succeeded',1,0,0,0,1,200,NULL,NULL,NULL,NULL,1767225600000000,'[]',1);
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	job TEXT NOT NULL, 
	started_by TEXT NOT NULL, 
	owner_id BIGINT, 
	request_id TEXT, 
	started_at BIGINT NOT NULL, 
	finished_at BIGINT, 
	is_cut_off BOOLEAN NOT NULL, 
	source_count INTEGER NOT NULL, 
	succeeded INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	skipped INTEGER NOT NULL, 
	new_count INTEGER NOT NULL, 
	updated_count INTEGER NOT NULL, 
	duplicate_count INTEGER NOT NULL, 
	invalid_count INTEGER NOT NULL, 
	request_count INTEGER NOT NULL, 
	error TEXT, 
	CONSTRAINT pk_runs PRIMARY KEY (id)
);
INSERT INTO "runs" VALUES(1,'test','test',1,NULL,1767225660000000,NULL,0,0,0,0,0,0,0,0,0,0,NULL);
CREATE TABLE sessions (
	id INTEGER NOT NULL, 
	token_hash BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	last_used_at BIGINT NOT NULL, 
	ends_at BIGINT NOT NULL, 
	opened_by TEXT NOT NULL, 
	browser TEXT NOT NULL, 
	CONSTRAINT pk_sessions PRIMARY KEY (id), 
	CONSTRAINT uq_sessions_token_hash UNIQUE (token_hash)
);
INSERT INTO "sessions" VALUES(1,X'3C469E9D6C5875D37A43F353D4F88E61FCF812C66EEE3457465A40B0DA4153E0',1767225600000000,1767225600000000,1769817600000000,'link','a browser');
CREATE TABLE settings (
	name TEXT NOT NULL, 
	value TEXT NOT NULL, 
	updated_at BIGINT NOT NULL, 
	CONSTRAINT pk_settings PRIMARY KEY (name)
);
INSERT INTO "settings" VALUES('forgetting_key','"6f8c2ba7cdd9c3113b9b6e91c1ba64e74ce93e2601232b94cb2904a554326083"',1767226320000000);
INSERT INTO "settings" VALUES('fetch_interval.rss','30',1767225600000000);
CREATE TABLE sightings (
	source_id BIGINT NOT NULL, 
	ordered_at BIGINT NOT NULL, 
	item_id BIGINT NOT NULL, 
	first_seen_at BIGINT NOT NULL, 
	last_seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_sightings PRIMARY KEY (source_id, ordered_at, item_id)
)
 WITHOUT ROWID

;
INSERT INTO "sightings" VALUES(1,1766707200000000,1,1767225660000000,1767225720000000);
INSERT INTO "sightings" VALUES(1,1766793600000000,2,1767225660000000,1767225720000000);
INSERT INTO "sightings" VALUES(1,1766880000000000,3,1767225660000000,1767225720000000);
INSERT INTO "sightings" VALUES(1,1766966400000000,4,1767225660000000,1767225720000000);
INSERT INTO "sightings" VALUES(1,1767052800000000,5,1767225660000000,1767225720000000);
INSERT INTO "sightings" VALUES(1,1767225780000000,6,1767225780000000,1767225780000000);
INSERT INTO "sightings" VALUES(1,1767225780000000,7,1767225780000000,1767225780000000);
INSERT INTO "sightings" VALUES(1,1767225780000000,8,1767225780000000,1767225780000000);
INSERT INTO "sightings" VALUES(2,1767225600000000,16,1767226200000000,1767226200000000);
INSERT INTO "sightings" VALUES(2,1767225840000000,9,1767225840000000,1767225900000000);
INSERT INTO "sightings" VALUES(2,1767225840000000,10,1767225840000000,1767225900000000);
INSERT INTO "sightings" VALUES(2,1767226140000000,14,1767226140000000,1767226140000000);
INSERT INTO "sightings" VALUES(2,1767226200000000,15,1767226200000000,1767226200000000);
INSERT INTO "sightings" VALUES(2,1767226260000000,17,1767226260000000,1767226260000000);
INSERT INTO "sightings" VALUES(4,1767225600000000,11,1767225960000000,1767225960000000);
INSERT INTO "sightings" VALUES(4,1767225600000000,12,1767226020000000,1767226020000000);
INSERT INTO "sightings" VALUES(4,1767225600000000,13,1767226080000000,1767226080000000);
CREATE TABLE sign_in_links (
	id INTEGER NOT NULL, 
	token_hash BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	ends_at BIGINT NOT NULL, 
	CONSTRAINT pk_sign_in_links PRIMARY KEY (id), 
	CONSTRAINT uq_sign_in_links_token_hash UNIQUE (token_hash)
);
INSERT INTO "sign_in_links" VALUES(1,X'3C469E9D6C5875D37A43F353D4F88E61FCF812C66EEE3457465A40B0DA4153E0',1767225600000000,1767226500000000);
CREATE TABLE source_counts (
	source_id INTEGER NOT NULL, 
	item_count BIGINT NOT NULL, 
	CONSTRAINT pk_source_counts PRIMARY KEY (source_id), 
	CONSTRAINT fk_source_counts_source_id FOREIGN KEY(source_id) REFERENCES sources (id)
);
INSERT INTO "source_counts" VALUES(1,8);
INSERT INTO "source_counts" VALUES(2,6);
INSERT INTO "source_counts" VALUES(3,0);
INSERT INTO "source_counts" VALUES(4,3);
CREATE TABLE sources (
	id INTEGER NOT NULL, 
	"key" TEXT NOT NULL, 
	platform TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	target TEXT NOT NULL, 
	name TEXT NOT NULL, 
	is_name_given BOOLEAN NOT NULL, 
	settings TEXT NOT NULL, 
	credential TEXT, 
	interval_minutes INTEGER, 
	categories TEXT NOT NULL, 
	priority TEXT NOT NULL, 
	quality_score FLOAT, 
	state TEXT NOT NULL, 
	state_reason TEXT, 
	state_changed_at BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT pk_sources PRIMARY KEY (id), 
	CONSTRAINT uq_sources_kind_target UNIQUE (kind, target)
);
INSERT INTO "sources" VALUES(1,'8fc46aa470da1befd976','feeds','rss','https://one.example/','https://one.example/',0,'{}',NULL,15,'["news"]','medium',NULL,'active',NULL,1767225600000000,1767225600000000);
INSERT INTO "sources" VALUES(2,'707144e21d62cfefa346','reddit','reddit','https://r/two.example/','https://r/two.example/',0,'{}',NULL,NULL,'[]','medium',NULL,'paused','on leave',1767226260000000,1767225600000000);
INSERT INTO "sources" VALUES(3,'f70c9147bbd4b92d7a14','feeds','rss','https://three.example/','https://three.example/',0,'{}','somebody',NULL,'[]','medium',NULL,'active',NULL,1767225600000000,1767225600000000);
INSERT INTO "sources" VALUES(4,'584335ddae522ca6eb94','reddit','reddit','https://r/four.example/','https://r/four.example/',0,'{}',NULL,NULL,'[]','medium',NULL,'active',NULL,1767225900000000,1767225900000000);
CREATE TABLE standings (
	span TEXT NOT NULL, 
	starts_at BIGINT NOT NULL, 
	hit_count BIGINT NOT NULL, 
	miss_count BIGINT NOT NULL, 
	tiers TEXT, 
	CONSTRAINT pk_standings PRIMARY KEY (span, starts_at)
)
 WITHOUT ROWID

;
INSERT INTO "standings" VALUES('hour',1767225600000000,3,1,'{"tier1":2}');
CREATE TABLE tags (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	first_seen_at BIGINT NOT NULL, 
	CONSTRAINT pk_tags PRIMARY KEY (id), 
	CONSTRAINT uq_tags_name UNIQUE (name)
);
INSERT INTO "tags" VALUES(1,'day',1767225660000000);
INSERT INTO "tags" VALUES(2,'日',1767225660000000);
CREATE TABLE watch_hits (
	watch_id INTEGER NOT NULL, 
	change_number BIGINT NOT NULL, 
	item_id BIGINT NOT NULL, 
	words TEXT NOT NULL, 
	is_edit BOOLEAN NOT NULL, 
	matched_at BIGINT NOT NULL, 
	CONSTRAINT pk_watch_hits PRIMARY KEY (watch_id, change_number, item_id), 
	CONSTRAINT fk_watch_hits_watch_id FOREIGN KEY(watch_id) REFERENCES watches (id)
)
 WITHOUT ROWID

;
INSERT INTO "watch_hits" VALUES(1,1,1,'["天"]',0,1767226320000000);
INSERT INTO "watch_hits" VALUES(1,1,2,'["天"]',0,1767226320000000);
INSERT INTO "watch_hits" VALUES(1,1,3,'["天"]',0,1767226320000000);
INSERT INTO "watch_hits" VALUES(1,1,4,'["天"]',0,1767226320000000);
INSERT INTO "watch_hits" VALUES(1,1,5,'["天"]',0,1767226320000000);
CREATE TABLE watches (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	words TEXT NOT NULL, 
	is_any_enough BOOLEAN NOT NULL, 
	kinds TEXT NOT NULL, 
	source_ids TEXT NOT NULL, 
	authors TEXT NOT NULL, 
	is_for_edits BOOLEAN NOT NULL, 
	is_active BOOLEAN NOT NULL, 
	created_at BIGINT NOT NULL, 
	from_change_number BIGINT NOT NULL, 
	item_position BIGINT NOT NULL, 
	edit_position BIGINT NOT NULL, 
	edit_position_item_id BIGINT NOT NULL, 
	hit_count BIGINT NOT NULL, 
	last_hit_at BIGINT, 
	CONSTRAINT pk_watches PRIMARY KEY (id), 
	CONSTRAINT uq_watches_name UNIQUE (name)
);
INSERT INTO "watches" VALUES(1,'days','["天","-night"]',0,'[]','[]','[]',0,1,1767225600000000,0,17,0,0,5,1767226320000000);
CREATE TABLE webhooks (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	events TEXT NOT NULL, 
	key_id TEXT NOT NULL, 
	sealed BLOB NOT NULL, 
	created_at BIGINT NOT NULL, 
	CONSTRAINT uq_webhooks_name UNIQUE (name)
);
INSERT INTO "webhooks" VALUES(1,'mine','https://hooks.example/','["watch.matched"]','key',X'7365616C6564',1767225600000000);
CREATE INDEX ix_sources_key ON sources ("key");
CREATE INDEX ix_sources_credential ON sources (credential) WHERE credential IS NOT NULL;
CREATE INDEX ix_sources_state_id ON sources (state, id);
CREATE INDEX ix_sources_platform ON sources (platform);
CREATE INDEX ix_sightings_item_id_source_id ON sightings (item_id, source_id);
CREATE INDEX ix_sightings_source_id_first_seen_at_item_id ON sightings (source_id, first_seen_at, item_id);
CREATE INDEX ix_runs_unfinished ON runs (owner_id) WHERE finished_at IS NULL;
CREATE INDEX ix_runs_started_at ON runs (started_at);
CREATE INDEX ix_leases_held ON leases (owner_id) WHERE owner_id IS NOT NULL;
CREATE INDEX ix_outbox_created_at ON outbox (created_at);
CREATE INDEX ix_replied_item_id_list_last_reply_at ON replied (item_id, list, last_reply_at);
CREATE INDEX ix_owed_waiting ON owed (source_id, owed_at, item_id);
CREATE INDEX ix_credential_changes_changed_at ON credential_changes (changed_at);
CREATE INDEX ix_credential_changes_credential_id ON credential_changes (credential, id);
CREATE INDEX ix_looks_due ON looks (platform, next_look_at) WHERE next_look_at IS NOT NULL;
CREATE INDEX ix_indexed_too_long ON "indexed" (place) WHERE is_too_long;
CREATE INDEX ix_progress_failing ON progress (failures_in_a_row, source_id) WHERE is_active AND last_error IS NOT NULL;
CREATE INDEX ix_progress_left_alone ON progress (kind, last_polled_at) WHERE is_active AND average_valid IS NOT NULL;
CREATE INDEX ix_progress_due_by_kind_and_time ON progress (kind, precedence, next_due_at) WHERE is_active AND next_due_at IS NOT NULL;
CREATE INDEX ix_progress_expected_by ON progress (expected_by) WHERE is_active AND expected_by IS NOT NULL;
CREATE INDEX ix_progress_due_by_kind ON progress (kind, precedence, last_polled_at) WHERE is_active AND next_due_at IS NULL;
CREATE INDEX ix_progress_by_average ON progress (average_valid, source_id) WHERE is_active AND average_valid IS NOT NULL;
CREATE INDEX ix_items_ordered_at_id ON items (ordered_at, id);
CREATE INDEX ix_items_thread ON items (platform, scope, thread_id, ordered_at, id) WHERE thread_id IS NOT NULL;
CREATE INDEX ix_items_first_seen_at_id ON items (first_seen_at, id);
CREATE INDEX ix_items_heads ON items (platform, scope, thread_id) WHERE is_head;
CREATE INDEX ix_items_change_number_id ON items (change_number, id);
CREATE INDEX ix_items_content_change_number_id ON items (content_change_number, id);
CREATE INDEX ix_gaps_open ON gaps (id) WHERE closed_at IS NULL;
CREATE INDEX ix_gaps_source_id_id ON gaps (source_id, id);
CREATE INDEX ix_gaps_open_of_source ON gaps (source_id, id) WHERE closed_at IS NULL;
CREATE INDEX ix_run_sources_started_at ON run_sources (started_at);
CREATE INDEX ix_run_sources_source_id_started_at ON run_sources (source_id, started_at);
CREATE INDEX ix_raw_answers_source_id_body_hash ON raw_answers (source_id, body_hash);
CREATE INDEX ix_raw_answers_answered_at_id ON raw_answers (answered_at, id);
CREATE UNIQUE INDEX uq_alerts_open ON alerts (subject) WHERE closed_at IS NULL;
CREATE INDEX ix_alerts_open ON alerts (id) WHERE closed_at IS NULL;
CREATE INDEX ix_alerts_closed ON alerts (closed_at, id) WHERE closed_at IS NOT NULL;
CREATE INDEX ix_forgotten_marks_forgotten_id ON forgotten_marks (forgotten_id);
CREATE INDEX ix_watch_hits_item_id ON watch_hits (item_id);
CREATE INDEX ix_hot_sets_expires_at ON hot_sets (expires_at);
CREATE INDEX ix_aliases_item_id ON aliases (item_id);
CREATE INDEX ix_item_references_external_id ON item_references (external_id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('webhooks',1);
INSERT INTO "sqlite_sequence" VALUES('deliveries',1);
INSERT INTO "sqlite_sequence" VALUES('owners',1);
COMMIT;
CREATE VIRTUAL TABLE item_words USING fts5(terms, content='', detail=none, columnsize=0, tokenize='ascii');
INSERT INTO item_words (rowid, terms) VALUES (3793974822803865601, '¦6 ¦3 ¦5 ¦9 ¦8 about 6   第 天 第   天');
INSERT INTO item_words (rowid, terms) VALUES (3794160365391052802, '¦6 ¦3 ¦5 ¦9 ¦8 about 5   第 天 第   天');
INSERT INTO item_words (rowid, terms) VALUES (3794345907978240003, '¦6 ¦3 ¦5 ¦9 ¦8 about 4   第 天 第   天');
INSERT INTO item_words (rowid, terms) VALUES (3794531450565427204, '¦6 ¦3 ¦5 ¦9 ¦8 about 3   第 天 第   天');
INSERT INTO item_words (rowid, terms) VALUES (3794716993152614405, '¦6 ¦3 ¦5 ¦9 ¦8 2 about   第 天 第   天');
INSERT INTO item_words (rowid, terms) VALUES (3795088078326988811, '¦7 ¦3 ¦4 about t3 0 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088078326988812, '¦7 ¦3 ¦4 about t3 1 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088078326988813, '¦7 ¦3 ¦4 about t3 2 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088078326988816, '¦7 ¦3 ¦4 about t1 e said');
INSERT INTO item_words (rowid, terms) VALUES (3795088464874045446, '¦6 ¦3 ¦5 about late 0 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088464874045447, '¦6 ¦3 ¦5 about late 1 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088464874045448, '¦6 ¦3 ¦5 about late 2 said');
INSERT INTO item_words (rowid, terms) VALUES (3795088593723064329, '¦7 ¦3 ¦4 ¦1 ¦2 about t3 a said');
INSERT INTO item_words (rowid, terms) VALUES (3795088593723064330, '¦7 ¦3 ¦4 ¦2 about t3 b edited');
INSERT INTO item_words (rowid, terms) VALUES (3795089237968158734, '¦7 ¦3 ¦4 about t3 c said');
INSERT INTO item_words (rowid, terms) VALUES (3795089366817177615, '¦7 ¦3 ¦4 about t3 d said');
INSERT INTO item_words (rowid, terms) VALUES (3795089495666196497, '¦7 ¦3 ¦4 about t3 f said');
