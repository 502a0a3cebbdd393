"""What other parts of the product say in English, in Chinese: kinds, their settings, and those of the deployment.

Each is said once, where it is defined, and found here by its very words. A test fails for what is missing.
"""

from __future__ import annotations

KINDS = {
    "A feed (RSS, Atom, RDF, JSON Feed), by its own address or its site's": (
        "订阅源（RSS、Atom、RDF、JSON Feed），可给出订阅地址或网站地址"
    ),
    "A feed that is a digest of other sources": "汇总其他来源的订阅源",
    "A forum that runs Discourse: its latest posts and topics": "使用 Discourse 的论坛：最新帖子和主题",
    "A list of a JSON API, by its address": "JSON 接口返回的列表，给出其地址",
    "A web page: its main text and how it changes, or the links that match a selector": (
        "网页：正文及其变化，或与选择器匹配的链接"
    ),
    "Repositories that gain stars on GitHub now: all, or those in one language": (
        "GitHub 上正在获得星标的仓库：全部，或某种语言"
    ),
    "Stories of Hacker News: one of its lists (top, new, best, ask, show, job), or search:WORDS": (
        "Hacker News 的文章：某个列表（top、new、best、ask、show、job），或 search:关键词"
    ),
    "A community of Reddit: r/NAME": "Reddit 社区：r/名称",
}

_OF_ITEM = " (JMESPath over one item; by default the usual names are tried)"
_OF_ITEM_CHINESE = "（对单个条目的 JMESPath；默认尝试常见名称）"

FIELDS = {
    "Where the list of items is (JMESPath over the answer); by default it is looked for": (
        "条目列表的位置（对响应的 JMESPath）；默认自动查找"
    ),
    "What says that the answer is an error although its status is 200 (JMESPath)": (
        "状态码为 200 但实际出错时的标志（JMESPath）"
    ),
    "How the API orders its list": "接口列表的排序方式",
    "How many items are read at first, and of a snapshot at all": "首次读取的条目数；对快照则为总数上限",
    "How many items the API shows at all, where that is known": "接口最多显示多少条（如果知道）",
    "How its pages turn": "翻页方式",
    "Where the next cursor is (JMESPath over the answer); by default looked for": (
        "下一页游标的位置（对响应的 JMESPath）；默认自动查找"
    ),
    "The parameter that takes the cursor": "传递游标的参数",
    "The parameter that takes the page's number": "传递页码的参数",
    "The number of the first page": "第一页的编号",
    "The parameter that takes the offset": "传递偏移量的参数",
    "The parameter that takes the page's size": "传递每页条数的参数",
    "How many items a page should have": "每页的条目数",
    "How many pages are asked for at most in one visit": "每次访问最多请求的页数",
    "The parameter that takes the time of the newest item that is stored": "传递已保存的最新时间的参数",
    "How that time is written": "该时间的格式",
    "The header that takes the credential's secret: X-Api-Key, Authorization: Token": (
        "携带凭据密文的请求头：X-Api-Key、Authorization: Token"
    ),
    "More headers, as an object; none that is secret": "其他请求头（对象形式）；不得包含密文",
    "a language's name, or `all`; wins over the target": "语言名称，或 `all`；优先于目标",
    "the period in which the stars are counted; wins over the target": "统计星标的周期；优先于目标",
    "Which list is read, if not the one that the target names; `search` belongs to search:WORDS": (
        "读取哪个列表（若与目标不同）；`search` 用于 search:关键词"
    ),
    "The listing that is read beside the newest posts, `new`: none; by default its tier decides": (
        "除最新帖子外还读取的列表，`new` 表示不读；默认由活跃层级决定"
    ),
    "How far back `top` and `controversial` look; by default its tier decides": (
        "`top` 和 `controversial` 回看的时间范围；默认由活跃层级决定"
    ),
    "How many posts are asked for at first; by default its tier decides": ("首先请求的帖子数；默认由活跃层级决定"),
    "Whether the comments of its posts are read, too: true or false": "是否也读取帖子的评论：true 或 false",
    "Where there is no key: read the community's feed (`atom`), or fail and say so (`refuse`)": (
        "没有凭据时：读取社区的订阅源（`atom`），或报告失败（`refuse`）"
    ),
    "a CSS selector: the links that it matches are followed in place of the main text": (
        "CSS 选择器：关注与其匹配的链接，而不是正文"
    ),
} | {
    f"{english}{_OF_ITEM}": f"{chinese}{_OF_ITEM_CHINESE}"
    for english, chinese in {
        "Its id": "编号",
        "Its title": "标题",
        "Its text, plain": "纯文本正文",
        "Its text as HTML": "HTML 正文",
        "Where it can be read": "阅读地址",
        "What it points to": "指向的地址",
        "Who wrote it": "作者",
        "The author's id": "作者编号",
        "When it was posted: ISO 8601, RFC 822, seconds or milliseconds since 1970 …": (
            "发布时间：ISO 8601、RFC 822、1970 年以来的秒或毫秒等"
        ),
        "When it was last edited": "最后修改时间",
        "Its score, likes or points": "得分、点赞或积分",
        "How many replies it has": "回复数",
        "How often it was seen": "浏览数",
        "When it was last answered": "最后回复时间",
        "Its tags: a list, or a text with commas": "标签：列表，或逗号分隔的文本",
        "Its images, films, sounds and files: addresses, or objects with one": (
            "图片、视频、音频和文件：地址，或含地址的对象"
        ),
        "Its language": "语言",
        "Whether it stands at the top out of order": "是否置顶",
        "Whether it is marked as deleted": "是否标记为已删除",
    }.items()
}

SETTINGS = {
    "The folder for everything that is kept.": "保存全部数据的目录。",
    "The database. SQLite needs nothing else; PostgreSQL serves many processes and machines.": (
        "数据库。SQLite 无需其他组件；PostgreSQL 可供多个进程和多台机器使用。"
    ),
    "Redis, where there is one: what is hot, and the budgets that all processes share, live there; while it is away, "
    "in the database. Needs the extra `redis`.": (
        "Redis（如果有）：存放热数据和各进程共享的请求额度；不可用时改用数据库。需要安装 `redis` 附加组件。"
    ),
    "The address that `serve` listens on.": "`serve` 监听的地址。",
    "The port that `serve` listens on; 0: any free one.": "`serve` 监听的端口；0 表示任意空闲端口。",
    "A key for the API, given from outside.": "由外部指定的 API 密钥。",
    "What credentials are encrypted with; `catchment credentials new-key` makes one. Several, separated by commas, "
    "while keys are changed: the first one encrypts, all of them decrypt.": (
        "加密凭据的主密钥；可用 `catchment credentials new-key` 生成。"
        "更换期间可用逗号分隔多个：第一个用于加密，全部可解密。"
    ),
    "Minutes for which a credential of any platform rests after several errors in a row.": (
        "任何平台的凭据连续出错后冷却的分钟数。"
    ),
    "After how many errors in a row a credential of any platform rests. Only those count that are its own fault.": (
        "任何平台的凭据连续出错多少次后冷却。只计算由凭据本身引起的错误。"
    ),
    "After how many errors in all a credential of any platform is taken to be invalid.": (
        "任何平台的凭据累计出错多少次后视为失效。"
    ),
    "After how many days without an error a credential's errors in all are counted from 0 again.": (
        "凭据多少天没有错误后，累计错误重新从 0 计算。"
    ),
    "Hours after which a credential that was banned or found invalid is tried again, with one request; twice as many "
    "after each further fall. 0: not before a person resumes it.": (
        "被封禁或失效的凭据多少小时后用一次请求重试；每次再失败则时间加倍。0 表示由人工恢复。"
    ),
    "How many days before its end a credential that expires is warned of.": "凭据过期前多少天发出提醒。",
    "Seconds from one look for due sources to the next.": "两次查找到期来源之间的秒数。",
    "How many sources are collected at once.": "同时采集的来源数。",
    "Minutes from one visit of a source of this kind to the next.": "该类型来源两次访问之间的分钟数。",
    "Switches a job off, or sets every how many minutes it runs.": "关闭某个任务，或设置其运行间隔（分钟）。",
    "The number of a source that is known to be busy: its silence tells that the platform is down or blocks us. "
    "Without one: the busiest, where all sources of a platform lie on its own hosts.": (
        "一个已知活跃的来源编号：它沉默说明平台故障或屏蔽了我们。未设置时，对自有主机的平台取最活跃的来源。"
    ),
    "More calls to a platform in one minute than that are an alert. Meant for a budget of 60 a minute, as Reddit's is; "
    "where a platform may be asked more often, it grows along.": (
        "每分钟对一个平台的请求超过此数即告警。以每分钟 60 次的额度（如 Reddit）为准；额度更高的平台按比例放宽。"
    ),
    "Whether `/metrics` answers without a key, for a Prometheus that sends none.": (
        "`/metrics` 是否无需密钥即可访问，供不发送密钥的 Prometheus 使用。"
    ),
    "A smaller share of reads that the hot store could answer is an alert.": "热数据命中率低于此值即告警。",
    "Minutes without a visit that went well, although something is due, after which there is an alert.": (
        "有来源到期却多少分钟没有成功访问后告警。"
    ),
    "After how many failures in a row a source is put on probation.": "来源连续失败多少次后进入试用期。",
    "Lively communities, as a row: from which average of valid posts a visit on, hours from one visit to the next, the "
    "listing that is read (beside `new`, where it is another one), how far back that looks, how many posts.": (
        "活跃社区的一行设置：平均每次访问的有效帖子数下限、访问间隔（小时）、"
        "除 `new` 外读取的列表、其时间范围、帖子数。"
    ),
    "Communities in between, as a row like CATCHMENT_TIER1.": "中等活跃社区，写法同 CATCHMENT_TIER1。",
    "Quiet communities, as a row like CATCHMENT_TIER1; nobody is too quiet for it.": (
        "安静社区，写法同 CATCHMENT_TIER1；再安静也属于此层。"
    ),
    "Over how many visits the average is taken that tells the tier.": "用最近多少次访问的平均值决定层级。",
    "With fewer visits a community stays in the tier it is in.": "访问次数少于此值时社区保持原层级。",
    "The low-quality round (`crawl-low-quality`) visits communities with a lower average of valid posts.": (
        "低质量轮次（`crawl-low-quality`）访问有效帖子平均数低于此值的社区。"
    ),
    "The low-quality round visits what nobody has for so many hours.": ("低质量轮次访问超过多少小时无人访问的社区。"),
    "How many it visits at most, the oldest visit first.": "该轮次最多访问的数量，最久未访问的优先。",
    "How many communities of a kind are claimed at a time when they are due; the next batch when all of one are "
    "under way. What is asked for by name (`collect --source`, `--kind`, `--all`) is claimed as hands come free.": (
        "到期时每次领取同一类型的社区数；一批全部开始后再领取下一批。"
        "点名采集的（`collect --source`、`--kind`、`--all`）有空闲即领取。"
    ),
    "How many communities of a kind are collected at once, within COLLECTOR_CONCURRENCY; other sources go on.": (
        "同时采集的同类社区数，不超过 COLLECTOR_CONCURRENCY；其他来源照常进行。"
    ),
    "How many posts of a community are asked for at first, and of the listing that is read beside the newest. Its own "
    "setting `limit`, and its tier's, go before it.": (
        "社区首先请求的帖子数，也用于最新之外读取的列表。社区自己的 `limit` 和层级的设置优先。"
    ),
    "The listing of a community that is read beside its newest posts; new: none. Its own setting `sort`, and its "
    "tier's, go before it.": "除最新帖子外读取的社区列表；new 表示不读。社区自己的 `sort` 和层级的设置优先。",
    "How far back that listing looks, if it is top or controversial. A community's own setting `time_filter`, and its "
    "tier's, go before it.": (
        "该列表（top 或 controversial）回看的时间范围。社区自己的 `time_filter` 和层级的设置优先。"
    ),
    "How many requests a platform is asked in its window at most (REDDIT_RATE_LIMIT: 60 for each key, unless it is "
    "given). One budget for the whole deployment.": (
        "每个时间窗口内对平台的请求上限（REDDIT_RATE_LIMIT 默认每个凭据 60 次）。整个部署共用一个额度。"
    ),
    "How long that window is, in seconds (REDDIT_RATE_LIMIT_WINDOW_SECONDS: 60).": (
        "该时间窗口的秒数（REDDIT_RATE_LIMIT_WINDOW_SECONDS：60）。"
    ),
    "How many requests to a platform at once, for each process and key (REDDIT_MAX_CONCURRENCY: 10).": (
        "每个进程和凭据对平台的并发请求数（REDDIT_MAX_CONCURRENCY：10）。"
    ),
    "How long an answer of a platform may take, in seconds; else CATCHMENT_TIMEOUT_SECONDS.": (
        "等待平台响应的最长秒数；未设置则用 CATCHMENT_TIMEOUT_SECONDS。"
    ),
    "What we call ourselves to one platform; else CATCHMENT_USER_AGENT. Reddit wants to know who asks: "
    "REDDIT_USER_AGENT=linux:my-archive:1.0 (by /u/NAME); without either it is told in this form that no name is "
    "given.": (
        "对某个平台使用的标识；未设置则用 CATCHMENT_USER_AGENT。"
        "Reddit 希望知道是谁在请求：REDDIT_USER_AGENT=linux:my-archive:1.0 (by /u/NAME)；"
        "两者都未设置时，会以这种格式说明未提供名字。"
    ),
    "How long work under way may go on after a stop was asked for, in seconds.": (
        "要求停止后，进行中的工作最多可继续的秒数。"
    ),
    "Where a platform is asked, instead of its own hosts.": "访问平台时使用的地址，代替其自身主机。",
    "Whether sources may lie on this machine and in private networks. Link-local and metadata addresses never may.": (
        "来源是否可以位于本机和内网。链路本地地址和元数据地址始终不允许。"
    ),
    "What we call ourselves when asking. Good manners: add an address where you can be reached.": (
        "请求时使用的标识。建议附上联系方式，以示礼貌。"
    ),
    "How long an answer may take, in seconds.": "等待响应的最长秒数。",
    "How large an answer may be, once unpacked.": "解压后响应的大小上限。",
    "Seconds before each further attempt at a request.": "每次重试前等待的秒数。",
    "A proxy for all requests to platforms.": "所有平台请求使用的代理。",
    "How many requests to one host at once, where the platform declares no budget.": (
        "平台没有固定额度时，对同一主机的并发请求数。"
    ),
    "How many requests a second to one host, where the platform declares no budget; 0: no limit.": (
        "平台没有固定额度时，每秒对同一主机的请求数；0 表示不限。"
    ),
    "Characters of an item's text that are kept; a cut is marked.": "每条正文保存的字符数上限；截断会有标记。",
    "Days for which raw answers are kept, to be read again by a better reader; 0: none are kept.": (
        "原始响应保留的天数，供改进后的解析器重新读取；0 表示不保留。"
    ),
    "Days for which items of sources of this kind are kept, by when they were posted; for ever unless it is given. "
    "What a source still shows stays.": (
        "该类型来源的条目按发布时间保留的天数；未设置则永久保留。来源仍在显示的内容不会清除。"
    ),
    "Hours for which the newest of a community, and what a warm-up has cached of it, are kept hot.": (
        "社区最新内容及预热缓存作为热数据保留的小时数。"
    ),
    "Days for which records of runs, alerts that are over, and what became of credentials are kept.": (
        "运行记录、已关闭的告警和凭据变化记录保留的天数。"
    ),
    "Days for which counts of attempts are kept.": "请求次数统计保留的天数。",
    "Days for which the metrics of each day are kept; those of each hour go with the records of runs.": (
        "每日指标保留的天数；每小时指标随运行记录一起清理。"
    ),
    "Days for which an event is offered to a listener that does not take it; then it is given up, and counted.": (
        "事件向未接收的订阅方重试投递的天数；之后放弃并计数。"
    ),
    "Whether the end of a visit that brought something is told as an event (`items.ready`), for summaries and whatever "
    "else comes next.": ("访问带来新内容后是否发送事件（`items.ready`），供摘要等后续处理使用。"),
    "How log lines look; auto: for people on a terminal, JSON elsewhere.": (
        "日志格式；auto 表示终端中为易读格式，其他情况为 JSON。"
    ),
    "From which severity on events are logged.": "记录日志的最低级别。",
    "For tests and the demo only: <start>,<rate>, a clock that starts elsewhere and runs faster.": (
        "仅用于测试和演示：<start>,<rate>，从另一时刻开始并加速运行的时钟。"
    ),
    "$XDG_DATA_HOME/catchment, else ~/.local/share/catchment; on macOS ~/Library/Application Support/catchment": (
        "$XDG_DATA_HOME/catchment，否则 ~/.local/share/catchment；macOS 为 ~/Library/Application Support/catchment"
    ),
    "the file catchment.db in CATCHMENT_HOME": "CATCHMENT_HOME 中的 catchment.db 文件",
    "catchment/ and the version": "catchment/ 加版本号",
}

NOTES = {
    "read without a key, from the community's feed: no scores, no comment counts, no edits, no removals": (
        "没有凭据，读取社区的订阅源：没有评分和评论数，看不到编辑和删除"
    ),
}

FOREIGN = KINDS | FIELDS | SETTINGS | NOTES
