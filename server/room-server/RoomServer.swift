import ArgumentParser
import Foundation
import Logging
import RelayServer
import UnixSignals

/// Runs the signaling and relay server.
@main
struct RoomServer: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "room-server",
        abstract: "Relays live video between the participants of rooms.",
        discussion: """
            Listens on this machine alone unless told otherwise, so that the first run needs no set-up:

              room-server
              room-client connect --room my-room --source pattern
              room-client subscribe --room my-room --dump out

            Exit codes: 0 after Ctrl-C or SIGTERM, 64 usage, 69 the address cannot be listened at.
            """,
        version: RelayServer.version
    )

    /// Runs the program, once the standard streams are there.
    ///
    /// The number of one that is closed would go to a socket, which then got the log.
    static func main() async {
        var number: Int32
        repeat { number = unsafe open("/dev/null", O_RDWR | O_CLOEXEC) } while (0...STDERR_FILENO).contains(number)
        close(number)
        await main(nil)
    }

    @Option(
        help: "Address of this machine's loopback to listen at, default 127.0.0.1; for others see --insecure-listen."
    )
    var host: String?

    @Option(help: "TCP port; 0 lets the system choose one.")
    var port: UInt16 = 8480

    @Option(
        help: ArgumentHelp(
            "Address to listen at for a network in which everybody may join, publish and watch.",
            discussion: "There are no access tokens yet: whoever reaches the port is in.",
            valueName: "address"
        )
    )
    var insecureListen: String?

    @Flag(help: "Also log who connects and how connections end.")
    var verbose = false

    func validate() throws {
        guard let host else { return }
        if let insecureListen {
            throw ValidationError("Say either --host \(host) or --insecure-listen \(insecureListen), not both.")
        }
        guard RelayServer.isReachableFromElsewhere(host: host) else { return }
        throw ValidationError(
            """
            --host \(host) is reachable from other machines, and this version has no access tokens: anybody could join.
            For a lab network where that is meant, say --insecure-listen \(host).
            """
        )
    }

    func run() async throws {
        // A reader of the log that goes away is no reason to stop relaying.
        signal(SIGPIPE, SIG_IGN)
        let log: BackgroundLog
        do {
            log = try BackgroundLog()
        } catch {
            throw Self.failure("\(error)")
        }
        defer { log.close() }
        var logger = Logger(label: "room-server") { _ in BackgroundLogHandler(log) }
        logger.logLevel = verbose ? .debug : .info
        var options = RelayServer.Options()
        options.host = insecureListen ?? host ?? options.host
        options.port = port
        options.logger = logger
        let server: RelayServer
        do {
            server = try RelayServer(options)
        } catch {
            throw Self.failure("\(error)")
        }
        // Before the log says that it listens: who has read that may send a signal.
        let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm)
        if insecureListen != nil {
            logger.warning("everybody who reaches \(server.url) may join, publish and watch")
        }
        logger.info("listening at \(server.url)")
        for await signal in signals {
            logger.info("shutting down", metadata: ["signal": "\(signal)"])
            break
        }
        server.stop()
    }

    /// Says why the server cannot be; gives the code to end with.
    private static func failure(_ sentence: String) -> ExitCode {
        FileHandle.standardError.write(Data("room-server: \(sentence)\n".utf8))
        return ExitCode(69)
    }
}
