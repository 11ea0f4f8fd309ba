import MediaCore
import Synchronization
import Testing
import Threading

@Suite("Mailbox", .timeLimit(.minutes(1)))
struct MailboxTests {
    @Test("The newest element wins and the displaced one is given back")
    func newestWins() {
        let mailbox = Mailbox<Int>()
        #expect(mailbox.put(1) == nil)
        #expect(mailbox.put(2) == 1)
        #expect(mailbox.take() == 2)
    }

    @Test("Closing ends a waiting take and refuses later elements")
    func closing() {
        let mailbox = Mailbox<Int>()
        let ended = Atomic(false)
        let thread = WorkerThread(name: "taker") {
            while mailbox.take() != nil {}
            ended.store(true, ordering: .releasing)
        }
        mailbox.close()
        thread.join()
        let hasEnded = ended.load(ordering: .acquiring)
        #expect(hasEnded)
        #expect(mailbox.put(7) == 7)
    }

    @Test("Every element is either taken or given back")
    func nothingVanishes() {
        let mailbox = Mailbox<Int>()
        let taken = Atomic(0)
        let thread = WorkerThread(name: "taker") {
            while mailbox.take() != nil { taken.add(1, ordering: .relaxed) }
        }
        var displaced = 0
        for element in 0..<20_000 where mailbox.put(element) != nil { displaced += 1 }
        while taken.load(ordering: .relaxed) + displaced < 20_000 {}
        mailbox.close()
        thread.join()
        let sum = taken.load(ordering: .relaxed) + displaced
        #expect(sum == 20_000)
    }
}

@Suite("Monitor", .timeLimit(.minutes(1)))
struct MonitorTests {
    @Test("A wait ends at its deadline")
    func deadline() {
        let monitor = Monitor(0)
        let deadline = MonotonicClock.now + .milliseconds(10)
        #expect(monitor.wait(until: deadline) { $0 > 0 ? $0 : nil } == nil)
        #expect(MonotonicClock.now >= deadline)
    }

    @Test("A change wakes the one who waits for it")
    func change() {
        let monitor = Monitor(0)
        let thread = WorkerThread(name: "changer") { monitor.change { $0 = 5 } }
        #expect(monitor.wait { $0 > 0 ? $0 : nil } == 5)
        thread.join()
    }
}

@Suite("Pools", .timeLimit(.minutes(1)))
struct PoolTests {
    @Test("A buffer comes back once nobody holds it, and not before")
    func reuse() {
        let pool = VideoBufferPool()
        let size = Dimensions(width: 64, height: 64)
        let first = pool.take(size)
        let second = pool.take(size)
        #expect(first !== second)
        let address = ObjectIdentifier(first)
        _ = consume first
        #expect(ObjectIdentifier(pool.take(size)) == address)
    }

    @Test("A free buffer of another size is replaced, so that a size change does not grow the pool")
    func sizeChange() {
        let pool = VideoBufferPool(limit: 2)
        for side in 1...100 {
            #expect(pool.take(Dimensions(width: side, height: side)).dimensions.width == side)
        }
    }

    @Test("Message buffers have room for what was asked", arguments: [0, 1, 1024, 1025, 16_000, 4_000_000, 40_000_000])
    func packetSizes(count: Int) {
        let packet = PacketBufferPool().take(count: count)
        #expect(packet.count == count && packet.capacity >= count)
    }

    @Test("Two threads never hold the same buffer")
    func exclusive() {
        let pool = PacketBufferPool(limit: 4)
        let clashes = Atomic(0)
        let threads = (0..<4).map { number in
            WorkerThread(name: "pool-\(number)") {
                for _ in 0..<5000 {
                    let packet = pool.take(count: 8)
                    packet.withMutableBytes { $0.storeBytes(of: UInt64(number), as: UInt64.self) }
                    let read = packet.withBytes { bytes in bytes.withUnsafeBytes { $0.load(as: UInt64.self) } }
                    if read != UInt64(number) { clashes.add(1, ordering: .relaxed) }
                }
            }
        }
        for thread in threads { thread.join() }
        let count = clashes.load(ordering: .relaxed)
        #expect(count == 0)
    }
}
