import ArgumentParser
import Foundation
import Logging
import ProgramSupport
import RelayServer
import Threading
import UnixSignals
import WebSockets
import Wording

/// Runs the signaling and relay server.
@main
struct RoomServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-server",
        abstract: "Relays live video between the participants of rooms.",
        usage: "room-server [<options>]",
        discussion: """
            By default the server accepts only connections from this machine. The first run needs no set-up:

              room-server
              room-client connect --room my-room --source pattern
              room-client subscribe --room my-room --dump out

            Programs that are not browsers may always connect. A web page may connect if the browser loaded it from \
            this server's own host and port, and the host is an address, localhost or a --host-name. Pages from \
            elsewhere may connect if --allow-origin gives their origin:

              room-server --allow-origin https://lab.example

            --config reads limits from a JSON file. The table in docs/protocol.md, section 11, lists the name, unit \
            and default of each. Times are in seconds, sizes in bytes, rates in bits per second:

              {"maximumRooms": 10, "joinTimeout": 5, "stream.liveWindow": 0.8}

            If systemd passes a listening socket (LISTEN_FDS), the server uses it instead of an address.

            Exit codes:
              0   after Ctrl-C, SIGTERM, SIGQUIT or SIGHUP
              64  an option that cannot be used
              65  the content of the --config file cannot be used
              66  no such --config file, or no such directory for --unix
              69  the server cannot listen at the address
              74  the --config file could not be read
              77  no permission
            """,
        version: RelayServer.version
    )

    /// Runs the program.
    static func main() async {
        StandardStreams.openMissing()
        do {
            if let problem = RawArguments.problem { throw ValidationError(problem) }
            var command = try parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            end(with: error)
        }
    }

    /// Ends the program with a help screen, with a code alone, or with a sentence about unusable arguments.
    private static func end(with error: any Error) -> Never {
        guard let complaint = UsageComplaint.about(error, from: self) else { exit(withError: error) }
        exit(withError: failure(complaint.sentence, code: complaint.code))
    }

    @Option(
        help: "Loopback address to listen at, default 127.0.0.1; for other addresses see --insecure-listen."
    )
    var host: String?

    @Option(
        parsing: .unconditional,
        help: "TCP port, default 8480; 0 lets the system choose one.",
        transform: { text throws -> UInt16 in
            guard let port = UInt16(text) else { throw ValidationError("give a number from 0 to 65535") }
            return port
        }
    )
    var port: UInt16?

    @Option(
        help: ArgumentHelp(
            "Address to listen at in a network where everybody may join, publish and watch.",
            discussion: "There are no access tokens yet: anybody who reaches the port can join.",
            valueName: "address"
        )
    )
    var insecureListen: String?

    @Option(
        help: ArgumentHelp(
            "Listen at a Unix socket instead of TCP; its directory's permissions decide who may connect.",
            valueName: "path"
        )
    )
    var unix: String?

    @Option(
        help: ArgumentHelp(
            "Origin of web pages that may connect, such as https://lab.example; may be repeated.",
            discussion: "“null” stands for pages without an origin, such as local files.",
            valueName: "origin"
        )
    )
    var allowOrigin: [String] = []

    @Option(
        help: ArgumentHelp(
            "Name under which browsers load pages from this server; may be repeated.",
            valueName: "name"
        )
    )
    var hostName: [String] = []

    @Option(
        help: ArgumentHelp(
            "TCP congestion control, such as cubic, bbr or system (the system's own).",
            discussion: "Default cubic, where the system allows it. bbr carries more where packets are lost.",
            valueName: "name"
        )
    )
    var congestionControl: String?

    @Option(help: ArgumentHelp("JSON file with limits.", valueName: "file"))
    var config: String?

    @Flag(help: "Also log who connects and how connections end.")
    var verbose = false

    func validate() throws {
        for origin in allowOrigin where WebOrigin(origin) == nil {
            throw ValidationError("“\(origin)” is no origin: say scheme://host or scheme://host:port, without a path.")
        }
        for name in hostName where !OriginPolicy.isHostName(name) {
            throw ValidationError("“\(name)” is no host name: leave scheme, port and path out, as in lab.example.")
        }
        if let congestionControl, congestionControl != "system",
            !TCPPath.isUsable(congestionControl: congestionControl)
        {
            throw ValidationError(
                """
                The system does not allow --congestion-control \(congestionControl); \
                /proc/sys/net/ipv4/tcp_allowed_congestion_control names what it allows.
                """
            )
        }
        if let unix {
            guard host == nil, insecureListen == nil, port == nil else {
                throw ValidationError("Say either --unix \(unix) or an address and port, not both.")
            }
        }
        try validateAddress()
    }

    private func validateAddress() throws {
        if let descriptor = try Self.inheritedSocket() {
            guard host == nil, unix == nil, port == nil else {
                throw ValidationError("With a socket handed over by LISTEN_FDS, leave --host, --port and --unix out.")
            }
            if let insecureListen, insecureListen != "inherited" {
                throw ValidationError(
                    "The socket handed over by LISTEN_FDS has its address: say --insecure-listen inherited."
                )
            }
            guard insecureListen == nil, RelayServer.isReachableFromElsewhere(inherited: descriptor) else { return }
            throw ValidationError(
                """
                The socket handed over by LISTEN_FDS is reachable from other machines, and this version has no access \
                tokens: anybody could join. For a lab network where that is meant, say --insecure-listen inherited.
                """
            )
        }
        for (option, value) in [("--host", host), ("--insecure-listen", insecureListen)] where value?.isEmpty == true {
            throw ValidationError("\(option) names no host: give an address of this machine, such as 127.0.0.1.")
        }
        guard let host else { return }
        if let insecureListen {
            throw ValidationError("Say either --host \(host) or --insecure-listen \(insecureListen), not both.")
        }
        guard RelayServer.isReachableFromElsewhere(host: Self.withoutBrackets(host)) else { return }
        throw ValidationError(
            """
            --host \(host) is reachable from other machines, and this version has no access tokens: anybody \
            could join. For a lab network where that is meant, say --insecure-listen \(host).
            """
        )
    }

    /// An IPv6 address as it stands in a URL, without its brackets.
    private static func withoutBrackets(_ host: String) -> String {
        host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
    }

    /// The socket that systemd passed to this process, as sd_listen_fds(3) describes; `nil` if there is none.
    private static func inheritedSocket() throws -> Int32? {
        let environment = ProcessInfo.processInfo.environment
        guard let process = environment["LISTEN_PID"], Int32(process) == getpid() else { return nil }
        guard let count = environment["LISTEN_FDS"].flatMap({ Int($0) }), count > 0 else { return nil }
        guard count == 1 else {
            throw ValidationError("LISTEN_FDS hands over \(count) sockets; this server listens at one.")
        }
        // SD_LISTEN_FDS_START
        return 3
    }

    /// The options for starting the server.
    private func options(logger: Logger) throws -> RelayServer.Options {
        var options = RelayServer.Options()
        options.host = Self.withoutBrackets(insecureListen ?? host ?? options.host)
        options.isLoopbackOnly = insecureListen == nil
        options.port = port ?? options.port
        options.logger = logger
        options.origins = OriginPolicy(
            hostNames: Set(hostName),
            allowedOrigins: Set(allowOrigin.compactMap { WebOrigin($0) })
        )
        if let congestionControl {
            options.congestionControl = congestionControl == "system" ? nil : congestionControl
        }
        if let unix { options.socket = .unix(path: unix) }
        if let descriptor = try Self.inheritedSocket() { options.socket = .inherited(descriptor: descriptor) }
        guard let config else { return options }
        let file = try Self.read(config)
        do throws(SettingsError) {
            try options.apply(settings: file)
        } catch {
            throw Self.failure("\(config) cannot be used: \(error).", code: 65)
        }
        return options
    }

    /// The longest settings file; all settings take a few KiB.
    private static let longestFile = 1 << 20

    /// Reads a settings file.
    private static func read(_ path: String) throws -> Data {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let (code, reason): (Int32, String) =
                switch errno {
                case ENOENT, ENOTDIR: (66, "there is no such file; check the name")
                case EACCES, EPERM: (77, "permission denied; check the owner and mode of the file (ls -l)")
                default: (74, unsafe String(cString: strerror(errno)))
                }
            throw failure("\(path) cannot be read: \(reason).", code: code)
        }
        let file = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        do {
            let content = try file.read(upToCount: longestFile + 1) ?? Data()
            if content.count <= longestFile { return content }
        } catch {
            throw failure("\(path) cannot be read: it is a directory, or its disk failed.", code: 74)
        }
        throw failure("\(path) has more than 1 MiB; that is no file of settings.", code: 65)
    }

    func run() async throws {
        // If the reader of the log goes away, relaying must continue.
        signal(SIGPIPE, SIG_IGN)
        // Nor does it end when the log may become no longer (ulimit -f).
        signal(SIGXFSZ, SIG_IGN)
        let log: LineWriter
        do {
            log = try makeLogWriter()
        } catch {
            throw Self.failure("\(error)")
        }
        defer { log.close() }
        var logger = Logger(label: "room-server") { _ in LineLogHandler(log) }
        logger.logLevel = verbose ? .debug : .info
        let options = try options(logger: logger)
        let server: RelayServer
        do throws(WebSocketError) {
            server = try RelayServer(options)
        } catch {
            throw Self.failure("\(error)", code: Self.code(for: error))
        }
        // Trap signals before logging that the server listens: a program that reads that line may send a signal.
        var trapped: [UnixSignal] = [.sigint, .sigterm, .sigquit]
        // Under nohup the server outlives its terminal.
        if !SignalDisposition.isIgnored(SIGHUP) { trapped.append(.sighup) }
        let signals = await UnixSignalsSequence(trapping: trapped)
        if insecureListen != nil {
            logger.warning(
                server.address.isLoopback
                    ? "only this machine reaches \(server.url)\(server.address.port == 0 ? "" : ", which is \(server.address.host)")"
                    : "everybody who reaches \(server.url) may join, publish and watch"
            )
        }
        // A name does not say which address it stands for.
        let isName = options.socket == .tcp && server.address.host != options.host
        logger.info("listening at \(server.url)", metadata: isName ? ["address": "\(server.address.host)"] : [:])
        for await signal in signals {
            logger.info("shutting down", metadata: ["signal": "\(signal)"])
            break
        }
        server.stop()
    }

    private static func code(for error: WebSocketError) -> Int32 {
        switch error.code {
        case .permissionDenied: 77
        case .noSuchDirectory: 66
        default: 69
        }
    }

    /// Writes why the server cannot run; returns the exit code.
    private static func failure(_ sentence: String, code: Int32 = 69) -> ExitCode {
        // Without a place to write to, the code must be enough.
        try? FileHandle.standardError.write(contentsOf: Data("room-server: \(harmless(sentence))\n".utf8))
        return ExitCode(code)
    }
}
