# A mail server.
set $dir=/tmp
set $nfiles=100
set $filesize=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)
set $nthreads=4
set mode quit firstdone

define fileset name=spool,path=$dir,size=$filesize,entries=$nfiles,dirwidth=20,prealloc=80

define process name=server,instances=1
{
  thread name=worker,memsize=10m,instances=$nthreads
  {
    flowop deletefile name=remove,filesetname=spool
    flowop createfile name=make,filesetname=spool,fd=1
    flowop writewholefile name=fill,fd=1,srcfd=1,iosize=1m
    flowop appendfilerand name=deliver,iosize=16k,fd=1
    flowop fsync name=sync,fd=1
    flowop closefile name=close1,fd=1
    flowop openfile name=open,filesetname=spool,fd=2
    flowop readwholefile name=read,fd=2,iosize=1m
    flowop closefile name=close2,fd=2
    flowop statfile name=look,filesetname=spool
    flowop opslimit name=limit
    flowop finishoncount name=finish,value=5000
  }
}
echo "loaded"
run 60
