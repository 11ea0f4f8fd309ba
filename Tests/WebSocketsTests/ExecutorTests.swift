import Glibc
import MediaCore
import TestTools
import Testing
import Threading

@testable import WebSockets

@Suite("The loop as an executor", .timeLimit(.minutes(1)))
struct ExecutorTests {
    actor Counter {
        nonisolated let loop: WebSocketLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private(set) var count = 0

        init(loop: WebSocketLoop) { self.loop = loop }

        func add() -> Bool {
            count += 1
            return loop.isCurrent
        }
    }

    @Test("An actor lives on the loop's thread, and calls of many tasks are not lost")
    func actor() async throws {
        let loop = try WebSocketLoop(name: "loop")
        let counter = Counter(loop: loop)
        let onLoop = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<500 { group.addTask { await counter.add() } }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(onLoop)
        #expect(await counter.count == 500)
        loop.shutdown()
        // After the end nobody waits in vain.
        #expect(await counter.add())
        #expect(await counter.count == 501)
        #expect(!loop.isCurrent)
    }

    @Test("A handler's methods may assume the actor's isolation")
    func isolation() async throws {
        let loop = try WebSocketLoop(name: "loop")
        let counter = Counter(loop: loop)
        let port = try loop.listen(ListenerOptions()) {
            Recorder(whenOpened: { _ in _ = counter.assumeIsolated { $0.add() } })
        }.port
        let client = Recorder()
        loop.connect(ClientOptions(url: try WebSocketURL("ws://127.0.0.1:\(port)")), handler: client)
        _ = client.events { !$0.isEmpty }
        loop.shutdown()
        #expect(await counter.count == 1)
    }

    @Test("Jobs given while the loop ends are run")
    func jobsDuringShutdown() async throws {
        for _ in 0..<20 {
            let loop = try WebSocketLoop(name: "loop")
            let counter = Counter(loop: loop)
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<50 { group.addTask { _ = await counter.add() } }
                group.addTask { loop.shutdown() }
            }
            #expect(await counter.count == 50)
        }
    }

    /// OpenSSL writes with `write`, which raises it.
    @Test("A write to a peer that is gone does not end the program on a loop's thread")
    func brokenPipeOnLoop() async {
        await #expect(processExitsWith: .success) {
            let loop = try WebSocketLoop(name: "loop")
            let status = Monitor<Int32?>(nil)
            loop.execute {
                var ends: [Int32] = [0, 0]
                pipe(&ends)
                close(ends[0])
                var byte: UInt8 = 0
                let count = write(ends[1], &byte, 1)
                status.change { $0 = count < 0 ? errno : 0 }
            }
            guard status.wait(for: { $0 }) == EPIPE else { throw TestFailure("the pipe is not broken") }
            loop.shutdown()
        }
    }

    @Test("A loop's parts trap off its thread", arguments: ConfinedUse.allCases)
    func confinement(use: ConfinedUse) async {
        await #expect(processExitsWith: .failure) { [use] in
            let loop = try WebSocketLoop(name: "loop")
            _ = try loop.listen(ListenerOptions()) { Recorder() }
            // A use that does not trap ends the process in good order.
            use.perform(on: loop.service, for: ClientOptions(url: try WebSocketURL("ws://127.0.0.1:1")))
        }
    }

    @Test("A copy beyond a buffer's end traps, in release builds too")
    func copyBounds() async {
        await #expect(processExitsWith: .failure) {
            let target = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 8)
            let source: [UInt8] = [1, 2, 3]
            source.withUnsafeBytes { target.copyChecked(from: $0, at: 14) }
        }
        let target = UnsafeMutableRawBufferPointer.allocate(byteCount: 16, alignment: 8)
        defer { target.deallocate() }
        let source: [UInt8] = [1, 2, 3]
        source.withUnsafeBytes { target.copyChecked(from: $0, at: 13) }
        target.copyChecked(from: UnsafeRawBufferPointer(start: nil, count: 0), at: 16)
        #expect(Array(target.suffix(3)) == source)
    }

    @Test("A loop leaves the process's SIGPIPE as it was")
    func brokenPipe() throws {
        var before = sigaction()
        sigaction(SIGPIPE, nil, &before)
        let loop = try WebSocketLoop(name: "loop")
        var after = sigaction()
        sigaction(SIGPIPE, nil, &after)
        loop.shutdown()
        let isSame = withUnsafeBytes(of: &before.__sigaction_handler) { old in
            withUnsafeBytes(of: &after.__sigaction_handler) { old.elementsEqual($0) }
        }
        #expect(isSame)
    }
}

/// A use of one of a loop's parts, which only the loop's thread may make.
enum ConfinedUse: String, CaseIterable, Codable {
    case connect, keep, release, wake, sendRequested, holdDeferring
    case acceptAll, connectionEnded, stopListening
    case resolved, isBegun, setConnected
    case isOpen, requestWrite, ping, close, hangUp

    func perform(on service: Service, for options: ClientOptions) {
        let listener = service.listeners[0]
        let attempt = ConnectAttempt(options: options, on: service)
        let connection = WebSocketConnection(
            service: service,
            role: .connecting(attempt),
            limits: options.limits,
            idle: options.idle,
            congestionControl: nil,
            peerAddress: "",
            handler: Recorder()
        )
        switch self {
        case .connect: service.connect(options, handler: Recorder())
        case .keep: service.keep(connection)
        case .release: service.release(connection)
        case .wake: service.wake(after: .seconds(600))
        case .sendRequested: service.sendRequested()
        case .holdDeferring: service.holdDeferring()
        case .acceptAll: listener.acceptAll()
        case .connectionEnded: listener.connectionEnded()
        case .stopListening: listener.stop()
        case .resolved: attempt.resolved(to: [])
        case .isBegun: _ = attempt.isBegun
        case .setConnected: attempt.isConnected = true
        case .isOpen: _ = connection.isOpen
        case .requestWrite: connection.requestWrite()
        case .ping: connection.ping()
        case .close: connection.close(code: 1000, reason: "")
        case .hangUp: connection.hangUp(reason: "")
        }
    }
}
