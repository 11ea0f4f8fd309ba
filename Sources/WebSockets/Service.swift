import CWebSockets
import Glibc
import MediaCore
import Synchronization
import Threading

/// A loop's libwebsockets context with its connections and listeners; confined to the loop's thread.
@safe final class Service: @unchecked Sendable {
    // `@unchecked Sendable`: other threads read only `thread`, which is atomic.

    /// How long a shutdown waits for the answers to our close messages.
    private static let shutdownGrace = Duration.seconds(1)
    /// The seconds that libwebsockets allows for each step of a handshake; our own deadlines are shorter.
    private static let handshakeStepSeconds: UInt32 = 60

    /// The most bytes of all header values of a handshake together.
    ///
    /// It is enough for a token of 4 KiB and the cookies of a small site; libwebsockets' own limit is 4 KiB.
    private static let headerByteCount: UInt32 = 8192

    let settings: LoopSettings
    let pool = PacketBufferPool()
    var maskingKeys = MaskingKeys()
    /// The queue for actions that must not happen inside a libwebsockets callback.
    weak var loop: WebSocketLoop?

    /// The thread that currently runs the loop's jobs, as a number; 0 for none.
    private let thread = Atomic<UInt>(0)
    /// The event loop of the thread; `nil` before the start and after the end.
    private(set) var events: EventLoop?
    private(set) var context: OpaquePointer?
    /// All connections that are not closed: they are owned here, and libwebsockets only points to them.
    var connections: [ObjectIdentifier: WebSocketConnection] = [:]
    var listeners: [Listener] = []
    /// The connections that have something to send.
    private(set) var senders = Senders()
    /// Connections with waiting messages, in the order of their turns.
    var deferringConnections: [WebSocketConnection] = []
    /// The connections that were added since the last return from libwebsockets.
    var newlyDeferring: [WebSocketConnection] = []
    /// The rest of this turn's time for work that any peer can cause.
    var budget = TurnBudget()
    /// The sockets that are read in the middle of a long turn; `nil` without descriptors for that.
    private(set) var mediaSockets: MediaSockets?
    /// The descriptors that libwebsockets has places for: from 0 to one less than this.
    private(set) var descriptorCapacity = 0
    /// Looks after media in the middle of a long turn.
    private(set) var interruption: TurnInterruption?
    /// The threads that look names up, by their connection attempt.
    var lookupThreads: [ObjectIdentifier: WorkerThread] = [:]
    private(set) var clientTable: ProtocolTable?
    private(set) var clientHost: OpaquePointer?
    /// When libwebsockets pings and disconnects; libwebsockets reads it as long as there is a context.
    private let keepalive: UnsafeMutablePointer<lws_retry_bo_t>
    private var scratchMemory: UnsafeMutableRawBufferPointer
    /// Ends the loop's wait, so that it handles what is due.
    private let reminder = LoopTimer {}
    private var alarm: LoopTimer?
    private(set) var stopDeadline: MonotonicInstant?

    init(settings: LoopSettings) {
        self.settings = settings
        unsafe scratchMemory = .allocate(byteCount: 4096, alignment: 16)
        var policy = unsafe lws_retry_bo_t()
        unsafe policy.secs_since_valid_ping = settings.libraryPingSeconds
        unsafe policy.secs_since_valid_hangup = settings.libraryHangUpSeconds
        unsafe keepalive = .allocate(capacity: 1)
        unsafe keepalive.initialize(to: policy)
    }

    deinit {
        unsafe scratchMemory.deallocate()
        unsafe keepalive.deinitialize(count: 1)
        unsafe keepalive.deallocate()
    }

    /// libwebsockets' keepalive for hosts, and for clients' connections, which do not take their host's.
    var keepalivePolicy: UnsafePointer<lws_retry_bo_t> { unsafe UnsafePointer(keepalive) }

    /// Traps if called off the loop's thread.
    func checkThread() {
        precondition(isCurrent, "a WebSocketLoop's parts are used off its thread")
    }

    /// Whether the caller runs on the loop's thread.
    var isCurrent: Bool { thread.load(ordering: .relaxed) == UInt(pthread_self()) }

    /// Makes the calling thread the loop's thread, or (`false`) ends that.
    func setCurrent(_ isCurrent: Bool) {
        thread.store(isCurrent ? UInt(pthread_self()) : 0, ordering: .relaxed)
    }

    /// Whether nothing new may be started.
    var isStopping: Bool { unsafe stopDeadline != nil || context == nil }

    /// Whether a shutdown is complete.
    var isStopped: Bool {
        guard let stopDeadline else { return false }
        return connections.isEmpty || MonotonicClock.now >= stopDeadline
    }

    /// Memory for a message of `count` bytes with its header before it, valid until the next call.
    func scratch(_ count: Int) -> UnsafeMutableRawPointer {
        let needed = PacketBuffer.headroom + count
        if unsafe scratchMemory.count < needed {
            unsafe scratchMemory.deallocate()
            unsafe scratchMemory = .allocate(byteCount: needed * 2, alignment: 16)
        }
        // The buffer is not empty, so it has an address.
        return unsafe scratchMemory.baseAddress.unsafelyUnwrapped + PacketBuffer.headroom
    }

    /// Ends the loop's wait after `duration`, so that it handles what is due.
    func wake(after duration: Duration) {
        checkThread()
        if let events { reminder.start(on: events, after: duration) }
    }

    /// Runs `body` at `time`; this replaces the earlier alarm.
    func setAlarm(at time: MonotonicInstant, _ body: @escaping @Sendable () -> Void) {
        checkThread()
        guard let events else { return }
        let alarm = LoopTimer(body)
        alarm.start(on: events, after: time.duration(since: MonotonicClock.now))
        self.alarm = alarm
    }
}

extension Service {
    /// Creates the context.
    func open() throws(WebSocketError) {
        checkThread()
        // OpenSSL uses `write`, which has no such option for each call.
        blockBrokenPipeSignal()
        guard let events = EventLoop() else {
            throw .system("start WebSockets", status: nil, advice: "There is no memory or no descriptor left.")
        }
        self.events = events
        interruption = TurnInterruption(of: events) { [unowned self] in serveMedia() }
        events.callbackRan = { [unowned self] in workIsDone() }
        mediaSockets = MediaSockets()
        var information = unsafe lws_context_creation_info()
        unsafe information.options = UInt64(LWS_SERVER_OPTION_EXPLICIT_VHOSTS) | UInt64(LWS_SERVER_OPTION_LIBEV)
        unsafe information.port = CONTEXT_PORT_NO_LISTEN
        unsafe information.pt_serv_buf_size = UInt32(ProtocolTable.receiveByteCount)
        unsafe information.timeout_secs = Self.handshakeStepSeconds
        unsafe information.connect_timeout_secs = Self.handshakeStepSeconds
        unsafe information.max_http_header_data2 = Self.headerByteCount
        // lws_create_context ignores SIGPIPE for the whole process. A program that writes to a pipe would miss the
        // signal, so the action is restored. The loop blocks SIGPIPE on its own thread instead.
        var pipeAction = sigaction()
        unsafe sigaction(SIGPIPE, nil, &pipeAction)
        DescriptorLimit.bound()
        descriptorCapacity = DescriptorLimit.current
        var foreignLoop: UnsafeMutableRawPointer? = unsafe UnsafeMutableRawPointer(events.pointer)
        let context = unsafe withUnsafeMutablePointer(to: &foreignLoop) { loop in
            unsafe information.foreign_loops = loop
            return unsafe lws_create_context(&information)
        }
        unsafe sigaction(SIGPIPE, &pipeAction, nil)
        guard let context = unsafe context else {
            let advice = "libwebsockets lacks memory, descriptors, or Debian's package libwebsockets-evlib-ev."
            throw .system("start WebSockets", status: nil, advice: advice)
        }
        unsafe self.context = context
        let table = ProtocolTable(
            hostName: "client",
            protocolNames: ["client"],
            receiveByteCount: ProtocolTable.clientReceiveByteCount
        )
        clientTable = table
        unsafe clientHost = try makeHost(table)
    }

    /// Adds a virtual host that does not itself listen.
    func makeHost(_ table: ProtocolTable, user: UnsafeMutableRawPointer? = nil) throws(WebSocketError) -> OpaquePointer
    {
        var information = unsafe lws_context_creation_info()
        // By the Host header, libwebsockets may move an accepted connection to another host with the same "port". These
        // ports keep it away from the clients' host, but not from another listener's.
        unsafe information.port = user == nil ? CONTEXT_PORT_NO_LISTEN : CONTEXT_PORT_NO_LISTEN_SERVER
        unsafe information.protocols = UnsafePointer(table.protocols)
        unsafe information.vhost_name = UnsafePointer(table.hostName)
        unsafe information.retry_and_idle_policy = unsafe keepalivePolicy
        unsafe information.user = user
        // A given proxy address keeps libwebsockets from reading `http_proxy` in the environment; port 0 means no
        // proxy.
        let noProxy: StaticString = ":0"
        unsafe information.http_proxy_address = UnsafeRawPointer(noProxy.utf8Start).assumingMemoryBound(to: CChar.self)
        guard let context = unsafe context, let host = unsafe lws_create_vhost(context, &information) else {
            throw .system(
                "set WebSockets up",
                status: nil,
                advice: "libwebsockets has no memory or no descriptor left."
            )
        }
        return unsafe host
    }

    /// Waits for an event, unless `isBusy`, and handles what is due.
    func turn(isBusy: Bool) {
        checkThread()
        // What is deferred while messages are sent is looked at in the next turn.
        let isWaiting = !isBusy && senders.isEmpty && deferringConnections.isEmpty && newlyDeferring.isEmpty
        if isWaiting { interruption?.loopWaits() }
        events?.turn(isWaiting: isWaiting)
        holdDeferring()
    }

    /// Sends for the connections that requested it.
    func sendRequested() {
        checkThread()
        senders.send { interruption?.runIfDue() }
    }

    /// Accepts no new work and begins to close everything.
    func beginStop() {
        checkThread()
        guard stopDeadline == nil else { return }
        stopDeadline = MonotonicClock.now + Self.shutdownGrace
        wake(after: Self.shutdownGrace)
        for listener in listeners { listener.stop() }
        for connection in Array(connections.values) {
            if connection.phase == .open {
                connection.close(code: 1001, reason: "going away")
            } else if connection.phase == .handshaking {
                abandon(connection, with: .shutDown("connect"))
            }
        }
    }

    /// Ends a connection that is not open yet.
    func abandon(_ connection: WebSocketConnection, with error: WebSocketError) {
        checkThread()
        if connection.ending == nil { connection.ending = .failed(error) }
        connection.cutOff()
    }

    /// Destroys the context, which ends all remaining connections.
    func close() {
        checkThread()
        reminder.stop()
        alarm = nil
        let context = unsafe context
        unsafe self.context = nil
        if let context = unsafe context { unsafe lws_context_destroy(context) }
        for connection in Array(connections.values) { release(connection) }
        for thread in lookupThreads.values { thread.join() }
        lookupThreads = [:]
        // The connections hold the service, which holds them; this ends the cycle.
        senders = Senders()
        deferringConnections = []
        newlyDeferring = []
        listeners = []
        clientTable = nil
        mediaSockets = nil
        interruption = nil
        events = nil
    }
}
